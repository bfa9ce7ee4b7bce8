// Pipeline = single: a model cut into stages of layers gives the bits of the whole, whatever the cut.
#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "compute/support/random_model.h"
#include "src/compute/worker/model_instance.h"
#include "src/compute/worker/step_arrays.h"
#include "src/compute/worker/worker_sizes.h"

namespace omnibus {
namespace {

constexpr int32_t kTokens = 24;

std::unique_ptr<ModelInstance> make_stage(const std::shared_ptr<const GgufFile>& file, int32_t rank,
                                          int32_t stages) {
  WorkerConfig config;
  config.model = file;
  config.threads = 1;
  config.max_num_batched_tokens = kTokens;
  config.parallel.pp_rank = rank;
  config.parallel.pp_size = stages;
  auto spec = resolve_sizes(config);
  EXPECT_TRUE(spec.ok()) << spec.status();
  auto bytes = plan_instance(*spec);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  auto instance = std::make_unique<ModelInstance>(*spec, *bytes);
  for (const Status& s : {instance->init(), instance->load(nullptr), instance->allocate_kv(2)})
    EXPECT_TRUE(s.ok()) << s;
  return instance;
}

// Logits after each of kTokens ids.
std::vector<std::vector<float>> run(const std::shared_ptr<const GgufFile>& file, int32_t stages) {
  RequestState state;
  for (TokenId i = 0; i < kTokens; ++i) state.tokens.push_back(i * 29 % 263);
  state.tables = {{1, 0}};
  const std::array<RequestState*, 1> states{&state};
  ScheduledRow row;
  row.n_tokens = kTokens;
  std::vector<float> residual(static_cast<size_t>(kTokens) * 256);
  IntermediateTensors between{residual.data(), 0, 0};
  std::vector<std::vector<float>> logits;
  for (int32_t rank = 0; rank < stages; ++rank) {
    const auto stage = make_stage(file, rank, stages);
    auto arrays = StepArrays::create(stage->bytes().groups, kTokens);
    const ForwardBatch batch = arrays->build({&row, 1}, states);
    const Status status = stage->model().forward(batch, stage->caches(), stages == 1 ? nullptr : &between);
    EXPECT_TRUE(status.ok()) << status;
    LogitsHead* head = stage->model().head();
    EXPECT_EQ(head != nullptr, rank == stages - 1);
    if (head == nullptr) continue;
    std::vector<int32_t> rows(kTokens);
    for (int32_t i = 0; i < kTokens; ++i) rows[static_cast<size_t>(i)] = i;
    std::vector<HeadRequest> requests(kTokens);
    for (HeadRequest& request : requests) request.full = true;
    std::vector<HeadOutput> outputs(kTokens);
    EXPECT_TRUE(head->project(rows, requests, outputs).ok());
    for (const HeadOutput& out : outputs) logits.emplace_back(out.full.begin(), out.full.end());
  }
  return logits;
}

TEST(PipelineTest, StagesGiveTheBitsOfTheWhole) {
  for (DenseFile sizes : {small_llama(), small_qwen2(), small_qwen3()}) {
    sizes.layers = 5;
    RandomModel model;
    model.sizes = sizes;
    const auto file = make_random_model(model);
    const auto whole = run(file, 1);
    ASSERT_EQ(whole.size(), static_cast<size_t>(kTokens));
    for (int32_t stages : {2, 3, 5})
      EXPECT_EQ(run(file, stages), whole) << sizes.architecture << " " << stages;
  }
}

}  // namespace
}  // namespace omnibus
