#include "output_processor.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/mutant.h"
#include "omnibus/base/common/rng.h"

namespace omnibus {

struct OutputProcessor::OpenParent {
  std::shared_ptr<const ParentRequest> request;
  struct Choice {
    std::unique_ptr<SequenceOutput> output;  // null once ended
    MonotonicNs last_token_ns = 0;
    RequestUsage usage;  // as last delivered
  };
  std::vector<Choice> choices;
  int32_t open = 0;
  bool prompt_counted = false;
  RequestSummary summary;
};

class OutputProcessor::Shard {
 public:
  Shard(bool is_inline, std::shared_ptr<const Tokenizer> tokenizer, RequestLedger* ledger,
        EngineMetrics metrics, FinishCallback on_stop)
      : inline_(is_inline),
        tokenizer_(std::move(tokenizer)),
        ledger_(ledger),
        metrics_(std::move(metrics)),
        on_stop_(std::move(on_stop)) {
    if (inline_) return;
    thread_ = std::thread([this] { run(); });
  }

  ~Shard() {
    flush();
    if (inline_) return;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_one();
    thread_.join();
  }

  void refuse(const ParentRequest& request, const Status& why) const {
    for (int32_t i = 0; i < request.n; ++i) {
      deliver(request, lost_output(request, i, why));
      ledger_->close_one(request.id, false);
    }
  }

  // Engine thread.
  void post(Posted&& posted) { outgoing_.push_back(std::move(posted)); }
  void flush() {
    if (outgoing_.empty()) return;
    if (inline_) {
      std::vector<Posted> batch;
      batch.swap(outgoing_);
      for (Posted& posted : batch) handle(posted);
      return;
    }
    {
      std::lock_guard lock(mutex_);
      if (mailbox_.empty()) {
        mailbox_.swap(outgoing_);
      } else {
        // All the memory first: what throws half-way would leave moved-from values to be posted again.
        mailbox_.reserve(mailbox_.size() + outgoing_.size());
        for (Posted& posted : outgoing_) mailbox_.push_back(std::move(posted));
      }
    }
    outgoing_.clear();
    ready_.notify_one();
  }

 private:
  void run() {
    std::vector<Posted> batch;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return closed_ || !mailbox_.empty(); });
        if (mailbox_.empty()) return;
        batch.swap(mailbox_);
      }
      for (Posted& posted : batch) handle(posted);
      batch.clear();
    }
  }

  // What fails here, for want of memory, ends one request and nothing else.
  void handle(Posted& posted) {
    if (posted.opened) {
      if (!attempt("opening a request", [&] { open(posted.opened); })) lose(*posted.opened);
      return;
    }
    const auto it = parents_.find(posted.parent_id);
    if (it == parents_.end()) return;  // all its choices have ended
    take(it->second, posted.event);
    if (it->second.open == 0 && !OMNIBUS_MUTANT(15)) parents_.erase(it);
  }

  // False, and logged: it threw.
  template <typename Work>
  static bool attempt(const char* what, const Work& work) {
    try {
      work();
      return true;
    } catch (const std::exception& e) {
      try {
        log_error("{}: {}", what, e.what());
      } catch (const std::exception&) {  // no memory for that either
      }
      return false;
    }
  }

  // Nobody could be found to take its events: all its choices end here.
  void lose(const ParentRequest& request) const {
    for (int32_t i = 0; i < request.n; ++i) stop(request.id + static_cast<RequestId>(i), 0);
    refuse(request, lost_);
  }

  // Allocates nothing.
  static RequestOutput lost_output(const ParentRequest& request, int32_t index, const Status& why) {
    RequestOutput output;
    output.id = request.id;
    output.index = index;
    output.finish_reason = FinishReason::kError;
    output.status = why;
    return output;
  }

  void stop(RequestId id, int32_t n_tokens) const {
    attempt("ending a sequence", [&] { on_stop_(id, n_tokens); });
  }

  void open(std::shared_ptr<const ParentRequest> request) {
    OpenParent parent;
    for (int32_t i = 0; i < request->n; ++i) {
      SequenceOutputParams params;
      params.parent_id = request->id;
      params.index = i;
      params.prompt_tokens = request->prompt_tokens;
      params.sampling = request->sampling;
      params.stops = request->stops;
      params.reasoning = request->reasoning;
      params.tokenizer = tokenizer_;
      parent.choices.push_back({std::make_unique<SequenceOutput>(std::move(params)), 0, {}});
    }
    parent.open = request->n;
    metrics_.add_request(request->n, request->max_tokens);
    const RequestId id = request->id;
    parent.request = std::move(request);
    parents_.emplace(id, std::move(parent));
  }

  void take(OpenParent& parent, const SequenceEvent& event) {
    OpenParent::Choice& choice = parent.choices[event.id - parent.request->id];
    if (choice.output == nullptr) {  // surplus behind a stop string, or a cancel that came too late
      if (OMNIBUS_MUTANT(15) && event.finish_reason) deliver(*parent.request, end_of(parent, event));
      return;
    }
    RequestOutput output;
    if (!attempt("making the output of a request", [&] { output = advance(parent, choice, event); })) {
      output = lost_output(*parent.request, static_cast<int32_t>(event.id - parent.request->id), lost_);
      output.usage = choice.usage;
      output.timeline = event.timeline;
      output.timeline.finished_ns = event.time_ns;
      // Tokens that the core has sampled since are surplus, as behind a stop string.
      if (!event.finish_reason) stop(event.id, event.first_index);
    }
    choice.usage = output.usage;
    const bool is_end = output.finish_reason.has_value();
    const bool was_served =
        output.finish_reason == FinishReason::kStop || output.finish_reason == FinishReason::kLength;
    if (is_end) {
      attempt("counting an end", [&] { count_end(parent, output, choice.last_token_ns != 0); });
      choice.output.reset();
      --parent.open;
    }
    deliver(*parent.request, std::move(output));
    if (!is_end) return;
    if (parent.open == 0) {
      attempt("logging a request",
              [&] { log_request(*parent.request, metrics_.model_name, parent.summary); });
    }
    // After the sink, so that whoever waits for the ledger has seen every output.
    ledger_->close_one(parent.request->id, was_served);
  }

  RequestOutput advance(OpenParent& parent, OpenParent::Choice& choice, const SequenceEvent& event) const {
    RequestOutput output = choice.output->take(event);
    if (!event.tokens.empty() && !std::exchange(parent.prompt_counted, true))
      metrics_.add_prompt(parent.request->prompt_tokens, event.timeline.cached_tokens);
    metrics_.add_tokens(output.token_ids.size(), output.timeline, event.time_ns, choice.last_token_ns);
    if (!output.token_ids.empty()) choice.last_token_ns = event.time_ns;
    // Last: it is not undone.
    if (const auto n_tokens = choice.output->stopped_at(); n_tokens && !event.finish_reason)
      stop(event.id, *n_tokens);
    return output;
  }

  void count_end(OpenParent& parent, const RequestOutput& output, bool has_token) const {
    metrics_.add_end({.reason = *output.finish_reason,
                      .usage = output.usage,
                      .timeline = output.timeline,
                      .has_token = has_token,
                      .expired = output.status.code() == StatusCode::kDeadlineExceeded});
    parent.summary.add(output);
    if (parent.open == 1) metrics_.add_request_end(parent.summary.most_tokens_of_a_choice);
  }

  static RequestOutput end_of(const OpenParent& parent, const SequenceEvent& event) {
    RequestOutput output;
    output.id = parent.request->id;
    output.index = static_cast<int32_t>(event.id - parent.request->id);
    output.finish_reason = event.finish_reason;
    output.status = event.status;
    return output;
  }

  static void deliver(const ParentRequest& request, RequestOutput output) {
    attempt("an output sink", [&] { request.sink(std::move(output)); });
  }

  const bool inline_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  RequestLedger* const ledger_;
  const EngineMetrics metrics_;
  const FinishCallback on_stop_;
  const Status lost_ = absl::InternalError("the server could not put this answer together");
  std::vector<Posted> outgoing_;             // engine thread only
  std::map<RequestId, OpenParent> parents_;  // text thread only
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Posted> mailbox_;
  bool closed_ = false;
  std::thread thread_;
};

OutputProcessor::OutputProcessor(int32_t threads, std::shared_ptr<const Tokenizer> tokenizer,
                                 RequestLedger* ledger, EngineMetrics metrics, FinishCallback on_stop) {
  for (int32_t i = 0; i < std::max(threads, 1); ++i)
    shards_.push_back(std::make_unique<Shard>(threads == 0, tokenizer, ledger, metrics, on_stop));
}

OutputProcessor::~OutputProcessor() = default;

OutputProcessor::Shard& OutputProcessor::shard_of(RequestId parent_id) {
  // Ids step by n: taken as they are, requests of n choices would share a few of the threads.
  return *shards_[splitmix64(parent_id, 0) % shards_.size()];
}

void OutputProcessor::open(std::shared_ptr<const ParentRequest> parent) {
  const RequestId id = parent->id;
  shard_of(id).post({id, std::move(parent), {}});
}

void OutputProcessor::post(RequestId parent_id, SequenceEvent&& event) {
  shard_of(parent_id).post({parent_id, nullptr, std::move(event)});
}

void OutputProcessor::refuse(const ParentRequest& request, const Status& why) {
  shard_of(request.id).refuse(request, why);
}

void OutputProcessor::flush() {
  for (auto& shard : shards_) shard->flush();
}

}  // namespace omnibus
