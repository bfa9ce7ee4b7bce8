#include "src/control/engine/request_admission.h"

#include <gtest/gtest.h>

#include "fakes/piece_tokenizer.h"

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Door {
  explicit Door(int32_t rows = 2, int32_t waiting = 3, int64_t waiting_tokens = 0)
      : tokenizer(fakes::make_piece_tokenizer({})) {
    config.max_model_len = 128;
    config.max_num_seqs = rows;
    config.max_waiting_requests = waiting;
    config.max_waiting_tokens = waiting_tokens;
    SchedulerConfig s;
    s.max_model_len = config.max_model_len;
    s.max_num_seqs = rows;
    s.max_num_batched_tokens = 64;
    KVCacheConfig kv;
    kv.num_blocks = 8;  // 128 tokens
    kv.groups.emplace_back();
    kv.groups[0].layers = {0};
    kv.groups[0].bytes_per_block = 1;
    clock.advance_ns(kSecond);
    scheduler = *Scheduler::create(s, kv, &clock);
    ledger = std::make_unique<RequestLedger>(ledger_limits(config, *scheduler), &clock);
    admission = std::make_unique<RequestAdmission>(
        RequestAdmissionParts{scheduler.get(), tokenizer.get(), ledger.get(), &clock});
  }
  StatusOr<std::unique_ptr<EngineCommand>> admit(int32_t prompt_tokens, int32_t n = 1) {
    GenerateRequest request;
    request.prompt_token_ids.assign(static_cast<size_t>(prompt_tokens), 'a');
    request.n = n;
    return admission->admit(std::move(request), [](RequestOutput) {});
  }

  EngineConfig config;
  ManualClock clock;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<RequestLedger> ledger;
  std::unique_ptr<RequestAdmission> admission;
};

TEST(RequestAdmission, EveryFieldReachesTheSequences) {
  Door door;
  GenerateRequest request;
  request.prompt_token_ids = {'a', 'b'};
  request.n = 2;
  request.tenant_salt = "salt";
  request.tenant = "team";
  request.priority = 3;
  request.deadline = 77;
  request.log_id = "req-1";
  request.trace_id = "0af7651916cd43dd8448eb211c80319c";
  const auto admitted = door.admission->admit(request, [](RequestOutput) {});
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  const auto* command = std::get_if<SubmitCommand>(admitted->get());
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->parent->log_id, "req-1");
  EXPECT_EQ(command->parent->trace_id, request.trace_id);
  EXPECT_EQ(command->parent->tenant, "team");
  ASSERT_EQ(command->choices.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const Request& choice = command->choices[i];
    EXPECT_EQ(choice.id, command->parent->id + i);
    EXPECT_EQ(choice.tenant, "team");
    EXPECT_EQ(choice.tenant_salt, "salt");
    EXPECT_EQ(choice.priority, 3);
    EXPECT_EQ(choice.deadline, 77);
    EXPECT_EQ(choice.arrival_ns, door.clock.now_ns());
  }
  EXPECT_NE(command->choices[0].sampling().seed, command->choices[1].sampling().seed);
}

TEST(RequestAdmission, RowsAndQueueTogetherBoundWhatIsOpen) {
  Door door(2, 3);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(door.admit(1).ok()) << i;
  const Status refused = door.admit(1).status();
  EXPECT_EQ(error_detail(refused).http, 429);
  EXPECT_EQ(error_detail(refused).code, "rate_limit_exceeded");
  EXPECT_GE(error_detail(refused).retry_after_ms, 1000);
  EXPECT_EQ(door.ledger->open_requests().sequences, 5) << "what is refused is not open";
  door.ledger->close_one(1);
  EXPECT_TRUE(door.admit(1).ok());
  EXPECT_FALSE(door.admit(1).ok());
}

TEST(RequestAdmission, PromptTokensThatWaitAreBounded) {
  Door door(2, 100, 64);  // beyond the 128 that the KV cache holds
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(door.admit(32).ok()) << i;
  EXPECT_EQ(error_detail(door.admit(1).status()).http, 429);
  EXPECT_EQ(door.ledger->open_requests().prompt_tokens, 6 * 32);
}

// Whatever is served can be let in: no prompt is longer than what may be open, and choices share theirs.
TEST(RequestAdmission, TheLongestPromptGetsInBesideALightLoad) {
  Door door(8, 100, 1);
  EXPECT_EQ(error_detail(door.admit(129).status()).http, 400);
  ASSERT_TRUE(door.admit(1).ok());
  EXPECT_TRUE(door.admit(127, 8).ok());
  EXPECT_TRUE(door.admit(1).ok());
  EXPECT_EQ(error_detail(door.admit(1).status()).http, 429);
}

TEST(RequestAdmission, LimitsMayChange) {
  Door door(2, 3);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(door.admit(1).ok());
  door.ledger->set_limits({6, 1000});
  EXPECT_TRUE(door.admit(1).ok());
  door.ledger->set_limits({2, 1000});
  EXPECT_EQ(error_detail(door.admit(1).status()).http, 429);
  EXPECT_EQ(door.ledger->open_requests().sequences, 6) << "what was accepted stays";
}

// Ends come every 4 s. A request of n choices needs as many ends.
TEST(RequestAdmission, RetryAfterIsTheTimeUntilThereIsRoom) {
  Door door(2, 3);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(door.admit(1).ok());
  for (RequestId id = 1; id < 100; ++id) {
    door.clock.advance_ns(4 * kSecond);
    door.ledger->close_one(id);
    ASSERT_TRUE(door.admit(1).ok());
  }
  EXPECT_EQ(error_detail(door.admit(1).status()).retry_after_ms, 4000);
  EXPECT_EQ(error_detail(door.admit(1, 3).status()).retry_after_ms, 12'000);
}

TEST(RequestAdmission, NothingComesInOnceItIsStopped) {
  Door door;
  EXPECT_TRUE(door.admit(1).ok());
  door.ledger->stop_admission(absl::UnavailableError("going"));
  EXPECT_EQ(door.admit(1).status(), absl::UnavailableError("going"));
  EXPECT_EQ(door.ledger->open_requests().sequences, 1);
}

}  // namespace
}  // namespace omnibus
