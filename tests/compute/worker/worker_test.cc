// The contract of WorkerBase on one rank: order of calls, bad plans, failures of one request, epochs, memory
// plan.
#include "omnibus/compute/worker/worker.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "worker_fixture.h"

namespace omnibus {
namespace {

std::shared_ptr<const GgufFile> llama(std::function<void(fakes::GgufWriter&)> edit = {},
                                      DenseFile sizes = small_llama()) {
  RandomModel model;
  model.sizes = sizes;
  model.edit = std::move(edit);
  return make_random_model(model);
}

SchedulerOutput one_row(const Request& request, uint64_t seq, std::vector<BlockId> blocks) {
  SchedulerOutput plan;
  plan.id = {1, seq};
  plan.new_requests.push_back({request, {}});
  ScheduledRow row;
  row.id = request.id;
  row.new_blocks = {std::move(blocks)};
  row.n_tokens = static_cast<int32_t>(request.prompt_token_ids.size());
  row.samples = true;
  plan.rows.push_back(row);
  return plan;
}

std::string prepare_error(WorkerBase& worker, const SchedulerOutput& plan) {
  const auto digest = worker.prepare(plan).get();
  return digest.ok() ? "accepted" : status_message(digest.status());
}

TEST(WorkerTest, BadPlansAreRefusedByNameAndChangeNothing) {
  const auto worker = ready_worker(small_config(llama(), Numerics::kFast));
  const Request good = make_request(1, 20, 263, 3);
  const SchedulerOutput plan = one_row(good, 1, {0, 1});
  const auto variant = [&](auto&& edit) {
    SchedulerOutput v = plan;
    edit(v);
    return prepare_error(*worker, v);
  };
  using testing::HasSubstr;
  EXPECT_THAT(variant([](auto& p) { p.rows[0].new_blocks[0] = {0, kTestBlocks}; }), HasSubstr("block 128"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].new_blocks[0] = {0}; }),
              HasSubstr("1 blocks of group 0 for 20"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].n_tokens = 21; }), HasSubstr("21 scheduled, 20 are known"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].n_tokens = 0; }), HasSubstr("0 tokens"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].samples = false; }), HasSubstr("samples"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].base_computed = -1; }), HasSubstr("base_computed -1"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].id = 9; }), HasSubstr("request 9: scheduled but not known"));
  EXPECT_THAT(variant([](auto& p) { p.rows.push_back(p.rows[0]); }), HasSubstr("two rows"));
  EXPECT_THAT(variant([](auto& p) { p.rows[0].drafts = {263}; }), HasSubstr("samples"));
  EXPECT_THAT(variant([](auto& p) { p.new_requests[0].request.prompt_token_ids[3] = 263; }),
              HasSubstr("token id 263 is outside the vocabulary of 263"));
  EXPECT_THAT(variant([](auto& p) {
                p.new_requests[0].request.adapter = AdapterRef{"a", "b"};
              }),
              HasSubstr("adapters"));
  EXPECT_THAT(variant([](auto& p) { p.new_requests[0].request.params = PoolingParams{}; }),
              HasSubstr("pooling"));
  EXPECT_THAT(variant([](auto& p) { p.numerics = Numerics::kF32; }), HasSubstr("numerics"));
  EXPECT_THAT(variant([](auto& p) { p.id.epoch = 2; }), HasSubstr("epoch 2 in epoch 1"));
  EXPECT_EQ(variant([](auto&) {}), "accepted");
  EXPECT_THAT(prepare_error(*worker, plan), HasSubstr("prepared and not committed"));
  EXPECT_EQ(worker->commit({1, 7}).get().status().code(), StatusCode::kFailedPrecondition);
  const auto output = worker->commit({1, 1}).get();
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->rows[0].tokens.size(), 1U);
  EXPECT_EQ(worker->progress().last_completed, (StepId{1, 1}));
  EXPECT_THAT(prepare_error(*worker, one_row(good, 2, {2, 3})), HasSubstr("added while it is running"));
}

TEST(WorkerTest, DigestFollowsEveryPlan) {
  const auto file = llama();
  const auto a = ready_worker(small_config(file, Numerics::kFast));
  const auto b = ready_worker(small_config(file, Numerics::kFast));
  DriverOptions options, other;
  other.chunk = 5;
  const auto requests = mixed_requests(263, 4);
  StepDriver first(*a, 1, kTestBlocks, Numerics::kFast), second(*b, 1, kTestBlocks, Numerics::kFast);
  (void)first.run(requests, options);
  (void)second.run(requests, options);
  EXPECT_EQ(first.digest(), second.digest());
  (void)first.run(requests, options);
  (void)second.run(requests, other);
  EXPECT_NE(first.digest(), second.digest());
}

TEST(WorkerTest, NotANumberFailsOneRequestAndItsBlocksComeBackClean) {
  // Token 200 has an embedding of NaN.
  const auto poison = [](fakes::GgufWriter& writer) {
    for (auto& tensor : writer.tensors())
      if (tensor.name == "token_embd.weight") {
        const size_t row = tensor.data.size() / 263;
        for (size_t i = 0; i < row; i += 4) {
          const float nan = std::numeric_limits<float>::quiet_NaN();
          std::memcpy(tensor.data.data() + 200 * row + i, &nan, 4);
        }
      }
  };
  DenseFile sizes = small_llama();
  sizes.matrix_type = GgmlType::kF32;
  sizes.tied = false;
  for (Numerics numerics : {Numerics::kFast, Numerics::kF32}) {
    const auto worker = ready_worker(small_config(llama(poison, sizes), numerics), 16);
    StepDriver driver(*worker, 1, 16, numerics);
    std::vector<Request> clean;
    for (RequestId id : {1, 2, 3}) {
      clean.push_back(make_request(id, 18, 200, 5));
      std::get<SamplingParams>(clean.back().params).allowed_token_ids = {5, 6, 7, 8, 9};
    }
    DriverOptions one_by_one;
    one_by_one.max_running = 1;
    const auto expected = driver.run(clean, one_by_one);
    std::vector<Request> mixed = clean;
    mixed.insert(mixed.begin() + 1, make_request(50, 40, 200, 6));
    mixed[1].prompt_token_ids[17] = 200;
    for (Request& r : mixed) r.id += 1000;
    const auto got = driver.run(mixed, {});
    EXPECT_EQ(got.at(1050).status, RowStatus::kNumericError);
    EXPECT_TRUE(got.at(1050).tokens.empty());
    for (RequestId id : {1, 2, 3})
      EXPECT_TRUE(got.at(1000 + id) == expected.at(id)) << "a neighbour of the NaN row";
    for (Request& r : clean) r.id += 2000;
    DriverOptions shuffled;
    shuffled.shuffle_blocks = true;
    for (int round = 0; round < 4; ++round) {
      const auto after = driver.run(clean, shuffled);
      for (RequestId id : {1, 2, 3})
        EXPECT_TRUE(after.at(2000 + id) == expected.at(id)) << "blocks reused after NaN";
    }
  }
}

TEST(WorkerTest, MinTokensBansEndsAndAMaskThatLeavesNothingFailsAlone) {
  const auto worker = ready_worker(small_config(llama(), Numerics::kFast));
  StepDriver driver(*worker, 1, kTestBlocks, Numerics::kFast);
  std::vector<Request> requests{make_request(1, 5, 263, 1), make_request(2, 5, 263, 1),
                                make_request(3, 5, 263, 1)};
  auto& ends = std::get<SamplingParams>(requests[0].params);
  ends.allowed_token_ids = {2, 17, 40};  // 2 is EOS
  ends.stop_token_ids = {17};
  ends.min_tokens = 4;
  ends.max_tokens = 40;
  auto& nothing = std::get<SamplingParams>(requests[1].params);
  nothing.allowed_token_ids = {2};
  nothing.min_tokens = 3;
  nothing.prompt_logprobs = 1;
  const auto results = driver.run(requests, {});
  const auto& tokens = results.at(1).tokens;
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(tokens[i], 40);
  EXPECT_TRUE(std::count(tokens.begin(), tokens.end(), 2) + std::count(tokens.begin(), tokens.end(), 17) > 5);
  EXPECT_EQ(results.at(2).status, RowStatus::kNoCandidate);
  EXPECT_TRUE(results.at(2).tokens.empty());
  EXPECT_TRUE(results.at(2).prompt_logprobs.empty());
  EXPECT_EQ(results.at(3).status, RowStatus::kOk);
}

// The step after `seq` of a request of 8 prompt tokens in block 0, whose input is the token of row `row`
// there.
SchedulerOutput from_step(const Request& request, uint64_t seq, int32_t row) {
  SchedulerOutput plan;
  plan.id = {1, seq + 1};
  ScheduledRow next;
  next.id = request.id;
  next.base_computed = static_cast<int32_t>(request.prompt_token_ids.size());
  next.n_tokens = 1;
  next.new_blocks = {{}};
  next.source = FromStep{seq, row};
  next.samples = true;
  plan.rows.push_back(next);
  return plan;
}

TEST(WorkerTest, RowMayTakeItsInputFromTheStepBefore) {
  const Request request = make_request(1, 8, 263, 3);
  const auto file = llama();
  const auto ahead = ready_worker(small_config(file, Numerics::kFast));
  const auto known = ready_worker(small_config(file, Numerics::kFast));
  for (WorkerBase* worker : {ahead.get(), known.get()}) {
    ASSERT_EQ(prepare_error(*worker, one_row(request, 1, {0})), "accepted");
    ASSERT_TRUE(worker->commit({1, 1}).get().ok());
  }
  using testing::HasSubstr;
  EXPECT_THAT(prepare_error(*ahead, from_step(request, 1, 1)), HasSubstr("row 1 of step 1"));
  SchedulerOutput older = from_step(request, 1, 0);
  older.rows[0].source = FromStep{0, 0};
  EXPECT_THAT(prepare_error(*ahead, older), HasSubstr("row 0 of step 0"));
  SchedulerOutput fresh = one_row(make_request(2, 8, 263, 4), 2, {1});
  fresh.rows[0].source = FromStep{1, 0};
  EXPECT_THAT(prepare_error(*ahead, fresh), HasSubstr("new request"));

  ASSERT_EQ(prepare_error(*ahead, from_step(request, 1, 0)), "accepted");
  SchedulerOutput plain = from_step(request, 1, 0);
  plain.rows[0].source = KnownTokens{};
  ASSERT_EQ(prepare_error(*known, plain), "accepted");
  const auto a = ahead->commit({1, 2}).get();
  const auto b = known->commit({1, 2}).get();
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->rows[0].tokens, b->rows[0].tokens);
  EXPECT_EQ(a->rows[0].logprobs[0].sampled.logprob, b->rows[0].logprobs[0].sampled.logprob);
}

// The scheduler plans ahead of a step whose failure it has not heard of.
TEST(WorkerTest, RowBehindAFailedOneIsVoid) {
  Request fails = make_request(1, 8, 263, 3);
  auto& params = std::get<SamplingParams>(fails.params);
  params.allowed_token_ids = {2};
  params.min_tokens = 3;
  const Request good = make_request(2, 8, 263, 4);
  const auto worker = ready_worker(small_config(llama(), Numerics::kFast));
  SchedulerOutput both = one_row(fails, 1, {0});
  const SchedulerOutput second = one_row(good, 1, {1});
  both.new_requests.push_back(second.new_requests[0]);
  both.rows.push_back(second.rows[0]);
  ASSERT_EQ(prepare_error(*worker, both), "accepted");
  const auto first = worker->commit({1, 1}).get();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->rows[0].status, RowStatus::kNoCandidate);

  SchedulerOutput next = from_step(fails, 1, 0);
  next.rows.push_back(from_step(good, 1, 1).rows[0]);
  ASSERT_EQ(prepare_error(*worker, next), "accepted");
  const auto output = worker->commit({1, 2}).get();
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->rows[0].status, RowStatus::kNoCandidate);
  EXPECT_TRUE(output->rows[0].tokens.empty());
  EXPECT_EQ(output->rows[1].status, RowStatus::kOk);
  ASSERT_EQ(output->rows[1].tokens.size(), 1U);
  // And the one beside it goes on from where it stands in the plan.
  SchedulerOutput third = from_step(good, 2, 1);
  third.rows[0].base_computed = 9;
  third.finished = {fails.id};
  EXPECT_EQ(prepare_error(*worker, third), "accepted");
  EXPECT_TRUE(worker->commit({1, 3}).get().ok());
}

// A prompt whose beginning another request has computed.
TEST(WorkerTest, NewRequestMayBeginBehindACachedPrefix) {
  const auto worker = ready_worker(small_config(llama(), Numerics::kFast));
  Request first = make_request(1, 20, 263, 3);
  Request second = first;
  second.id = 2;
  ASSERT_EQ(prepare_error(*worker, one_row(first, 1, {0, 1})), "accepted");
  const auto whole = worker->commit({1, 1}).get();
  ASSERT_TRUE(whole.ok());
  SchedulerOutput hit = one_row(second, 2, {0, 2});
  hit.rows[0].base_computed = 16;
  hit.rows[0].n_tokens = 4;
  ASSERT_EQ(prepare_error(*worker, hit), "accepted");
  const auto part = worker->commit({1, 2}).get();
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->rows[0].tokens, whole->rows[0].tokens);
  EXPECT_EQ(part->rows[0].logprobs[0].sampled.logprob, whole->rows[0].logprobs[0].sampled.logprob);
}

TEST(WorkerTest, EpochsEndByAbortAndBeginByJoin) {
  const auto worker = ready_worker(small_config(llama(), Numerics::kFast));
  const Request request = make_request(1, 8, 263, 3);
  ASSERT_EQ(prepare_error(*worker, one_row(request, 1, {0})), "accepted");
  worker->abort(1);
  EXPECT_EQ(worker->commit({1, 1}).get().status().code(), StatusCode::kAborted);
  EXPECT_EQ(worker->prepare(one_row(request, 2, {0})).get().status().code(), StatusCode::kAborted);
  GroupSpec group;
  group.ranks = {0};
  group.epoch = 1;
  EXPECT_EQ(worker->join(group).code(), StatusCode::kFailedPrecondition);
  group.epoch = 2;
  ASSERT_TRUE(worker->join(group).ok());
  SchedulerOutput again = one_row(request, 1, {0});
  again.id.epoch = 2;
  ASSERT_EQ(prepare_error(*worker, again), "accepted");
  EXPECT_TRUE(worker->commit({2, 1}).get().ok());
  worker->abort(1);  // late news of an old epoch
  EXPECT_EQ(worker->progress().last_completed, (StepId{2, 1}));
  ASSERT_TRUE(worker->control({ControlOp::Kind::kReset, ""}).ok());
  again.id.seq = 2;
  EXPECT_EQ(prepare_error(*worker, again), "accepted") << "reset drops the mirror";
  EXPECT_EQ(worker->control({ControlOp::Kind::kSleep, ""}).code(), StatusCode::kUnimplemented);
}

TEST(WorkerTest, CallsOutOfOrderAreRefused) {
  auto worker = make_worker(small_config(llama(), Numerics::kFast));
  ASSERT_TRUE(worker.ok());
  const auto plan = (*worker)->capacity();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*worker)->load().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*worker)->allocate_kv(plan->kv).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*worker)->join({1, {0}, {}}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*worker)->prepare({}).get().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*worker)->control({}).code(), StatusCode::kFailedPrecondition);
  KVCacheConfig other = plan->kv;
  other.groups[0].bytes_per_block += 1;
  EXPECT_THAT(status_message((*worker)->allocate_kv(other)), testing::HasSubstr("blocks of"));
}

}  // namespace
}  // namespace omnibus
