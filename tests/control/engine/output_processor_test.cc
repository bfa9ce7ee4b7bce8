#include "src/control/engine/output_processor.h"

#include <new>
#include <thread>

#include "engine_fixture.h"

namespace omnibus {
namespace {

constexpr TokenId kBad = '!';

// Has no memory for one of its tokens.
class ShortOfMemory final : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::span<const TextSegment> segments,
                              const EncodeOptions& options) const override {
    return inner_->encode(segments, options);
  }
  std::string_view token_bytes(TokenId id) const override {
    if (id == kBad) throw std::bad_alloc();
    return inner_->token_bytes(id);
  }
  bool is_special(TokenId id) const override { return inner_->is_special(id); }
  TokenId find_token(std::string_view text) const override { return inner_->find_token(text); }
  const TokenizerSpec& spec() const override { return inner_->spec(); }

 private:
  const std::shared_ptr<const Tokenizer> inner_ = fakes::make_piece_tokenizer({});
};

class Outputs {
 public:
  explicit Outputs(int32_t threads)
      : processor_(threads, std::make_shared<ShortOfMemory>(), &ledger, EngineMetrics(registry_, "m"),
                   [this](RequestId id, int32_t n_tokens) {
                     std::lock_guard lock(mutex_);
                     stopped_[id] = n_tokens;
                   }) {}

  void open(RequestId id, int32_t n, OutputSink sink) {
    ASSERT_TRUE(ledger.open(id, n, 1).ok());
    auto parent = std::make_shared<ParentRequest>();
    parent->id = id;
    parent->n = n;
    parent->prompt_tokens = 1;
    parent->stops = std::make_shared<StopAutomaton>(std::vector<std::string>());
    parent->sink = std::move(sink);
    processor_.open(std::move(parent));
  }
  void token(RequestId parent, int32_t index, TokenId token, int32_t position, bool ends = false) {
    SequenceEvent event;
    event.id = parent + static_cast<RequestId>(index);
    event.first_index = position;
    event.tokens = {token};
    if (ends) event.finish_reason = FinishReason::kLength;
    processor_.post(parent, std::move(event));
  }
  void flush() { processor_.flush(); }
  std::map<RequestId, int32_t> stopped() {
    std::lock_guard lock(mutex_);
    return stopped_;
  }

  SteadyClock clock;
  RequestLedger ledger{{1 << 20, 1 << 20}, &clock};

 private:
  MetricsRegistry registry_;
  std::mutex mutex_;
  std::map<RequestId, int32_t> stopped_;
  OutputProcessor processor_;  // last: its threads use the rest
};

TEST(OutputProcessor, WantOfMemoryEndsOneChoiceWithAnError) {
  for (const int32_t threads : {0, 1, 2}) {
    Collector collector;
    Outputs outputs(threads);
    outputs.open(1, 2, collector.sink());
    outputs.open(3, 1, collector.sink());
    outputs.token(1, 0, 'a', 0);
    outputs.token(1, 0, kBad, 1);
    outputs.token(1, 0, 'b', 2);  // the core has not heard of it yet
    outputs.token(1, 1, 'c', 0, /*ends=*/true);
    outputs.token(3, 0, kBad, 0, /*ends=*/true);
    outputs.flush();
    ASSERT_TRUE(outputs.ledger.wait_empty(std::chrono::seconds(20))) << "no place of the queue is lost";
    EXPECT_EQ(collector.get(1, 0).text, "a");
    EXPECT_EQ(collector.get(1, 0).last.finish_reason, FinishReason::kError);
    EXPECT_EQ(collector.get(1, 0).last.status.code(), StatusCode::kInternal);
    EXPECT_EQ(collector.get(1, 1).text, "c");
    EXPECT_EQ(collector.get(1, 1).last.finish_reason, FinishReason::kLength);
    EXPECT_EQ(collector.get(3, 0).last.finish_reason, FinishReason::kError);
    EXPECT_EQ(outputs.stopped(), (std::map<RequestId, int32_t>{{1, 1}}))
        << "the core need not hear of an end";
  }
}

// Ids step by n.
TEST(OutputProcessor, RequestsOfManyChoicesUseEveryThread) {
  constexpr int32_t kRequests = 64;
  for (const int32_t threads : {2, 3, 4}) {
    for (const int32_t n : {1, 2, 3, 4, 8}) {
      std::mutex mutex;
      std::map<std::thread::id, int32_t> served;
      Outputs outputs(threads);
      for (int32_t r = 0; r < kRequests; ++r) {
        const RequestId id = 1 + static_cast<RequestId>(r * n);
        outputs.open(id, n, [&](const RequestOutput& output) {
          if (output.index > 0) return;
          std::lock_guard lock(mutex);
          ++served[std::this_thread::get_id()];
        });
        for (int32_t i = 0; i < n; ++i) outputs.token(id, i, 'a', 0, /*ends=*/true);
      }
      outputs.flush();
      ASSERT_TRUE(outputs.ledger.wait_empty(std::chrono::seconds(20)));
      std::lock_guard lock(mutex);
      ASSERT_EQ(served.size(), static_cast<size_t>(threads)) << "n " << n;
      for (const auto& [thread, requests] : served)
        EXPECT_GE(requests, kRequests / threads / 3) << "n " << n << " threads " << threads;
    }
  }
}

}  // namespace
}  // namespace omnibus
