// The memory plan is exact (docs/design.md, P3), and what does not fit is refused with the value that would.
#include <filesystem>
#include <fstream>

#include "src/compute/worker/memory_limit.h"
#include "src/compute/worker/worker_sizes.h"
#include "worker_fixture.h"

namespace omnibus {
namespace {

using testing::HasSubstr;

InstanceSpec instance_spec(DenseFile sizes, Numerics numerics) {
  RandomModel model;
  model.sizes = std::move(sizes);
  WorkerConfig config = small_config(make_random_model(model), numerics);
  config.max_num_batched_tokens = 33;
  auto spec = resolve_sizes(config);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

TEST(MemoryPlanTest, PlannedBytesAreAllocatedBytes) {
  for (const DenseFile& sizes : {small_llama(), small_qwen2(), small_qwen3()}) {
    for (Numerics numerics : {Numerics::kFast, Numerics::kF32}) {
      for (int32_t threads : {1, 2}) {
        InstanceSpec spec = instance_spec(sizes, numerics);
        spec.threads = threads;
        const auto bytes = plan_instance(spec);
        ASSERT_TRUE(bytes.ok()) << bytes.status();
        ModelInstance instance(spec, *bytes);
        for (const Status& s : {instance.init(), instance.load(nullptr), instance.allocate_kv(13)})
          ASSERT_TRUE(s.ok()) << s;
        EXPECT_EQ(instance.weights_used(), bytes->weights);
        EXPECT_EQ(instance.scratch_used(), bytes->scratch);
        EXPECT_EQ(instance.kv_used(), 13 * bytes->kv_block());
        EXPECT_GT(bytes->weights, 0);
        EXPECT_GT(bytes->scratch, 0);
      }
    }
  }
}

TEST(MemoryPlanTest, MetaWorkerPlansWithoutWeights) {
  RandomModel model;
  model.sizes = small_llama();
  WorkerConfig config = small_config(make_random_model(model), Numerics::kFast);
  const auto real = make_worker(config);
  config.device.kind = DeviceKind::kMeta;
  const auto meta = make_worker(config);
  ASSERT_TRUE(real.ok() && meta.ok());
  const auto a = (*real)->capacity(), b = (*meta)->capacity();
  ASSERT_EQ(a->arenas.size(), b->arenas.size());
  for (size_t i = 0; i < a->arenas.size(); ++i) EXPECT_EQ(a->arenas[i].bytes, b->arenas[i].bytes);
  // 2 layers x 3 kv heads x (K, V) x 16 tokens x 16 dims x bf16
  EXPECT_EQ(a->kv.groups[0].bytes_per_block, 2 * 3 * 2 * 16 * 16 * 2);
}

InstanceBytes fake_bytes() {
  InstanceBytes bytes;
  bytes.weights = 100 << 20;
  bytes.scratch = 20 << 20;
  KVGroupSpec group;
  group.bytes_per_block = 1 << 20;  // 1 MiB for 16 tokens
  bytes.groups = {group};
  return bytes;
}

TEST(MemoryPlanTest, DefaultCacheIsTheSmallerOfAQuarterAndAllSequences) {
  KVBudget budget;
  budget.memory_limit = int64_t{1000} << 20;
  budget.max_num_seqs = 4;
  budget.max_model_len = 160;
  auto plan = plan_memory(fake_bytes(), budget);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kv.num_blocks, 40);  // 4 sequences of 10 blocks
  EXPECT_EQ(plan->total(), int64_t{160} << 20);
  budget.max_num_seqs = 100;
  plan = plan_memory(fake_bytes(), budget);
  EXPECT_EQ(plan->kv.num_blocks, 250);  // a quarter of the limit
  budget.kv_cache_bytes = (int64_t{33} << 20) + 5;
  plan = plan_memory(fake_bytes(), budget);
  EXPECT_EQ(plan->kv.num_blocks, 33);
}

TEST(MemoryPlanTest, RefusalsNameTheFlagAndTheValueThatFits) {
  KVBudget budget;
  budget.memory_limit = int64_t{400} << 20;
  budget.max_num_seqs = 4;
  budget.max_model_len = 1600;  // exactly the quarter: 100 blocks
  EXPECT_TRUE(plan_memory(fake_bytes(), budget).ok());
  budget.max_model_len = 1601;
  EXPECT_THAT(
      status_message(plan_memory(fake_bytes(), budget).status()),
      testing::AllOf(HasSubstr("--max-model-len 1601 needs 101.0 MiB"), HasSubstr("25 % of the memory limit"),
                     HasSubstr("--max-model-len 1600 or --kv-cache-memory 101")));
  budget.kv_cache_bytes = int64_t{300} << 20;  // 120 + 300 of 400
  budget.max_model_len = 160;
  EXPECT_THAT(status_message(plan_memory(fake_bytes(), budget).status()),
              testing::AllOf(HasSubstr("20.0 MiB are missing"), HasSubstr("use --kv-cache-memory 280")));
  budget.max_model_len = 4800;
  EXPECT_THAT(status_message(plan_memory(fake_bytes(), budget).status()),
              HasSubstr("use --max-model-len 4480 and --kv-cache-memory 280"));
  budget.kv_cache_bytes = 1000;
  EXPECT_THAT(status_message(plan_memory(fake_bytes(), budget).status()),
              HasSubstr("--kv-cache-memory gives 0.0 MiB: use --kv-cache-memory 300"));
  budget.kv_cache_bytes = int64_t{300} << 20;
  budget.memory_limit = int64_t{110} << 20;
  EXPECT_THAT(status_message(plan_memory(fake_bytes(), budget).status()), HasSubstr("does not fit"));
}

TEST(MemoryPlanTest, LengthBeyondTheModelIsRefused) {
  RandomModel model;
  model.sizes = small_llama();
  WorkerConfig config = small_config(make_random_model(model), Numerics::kFast);
  config.max_model_len = 129;
  EXPECT_THAT(status_message(make_worker(config).status()),
              testing::AllOf(HasSubstr("--max-model-len 129"), HasSubstr("--max-model-len 128 at most")));
  config.max_model_len = 0;
  config.numerics = Numerics::kFine;
  EXPECT_THAT(status_message(make_worker(config).status()), HasSubstr("--numerics fine"));
  config.numerics = Numerics::kFast;
  config.max_num_seqs = 0;
  EXPECT_THAT(status_message(make_worker(config).status()), HasSubstr("--max-num-seqs"));
  config.max_num_seqs = 1;
  config.kv_cache_bytes = int64_t{1} << 44;  // 16 TiB
  EXPECT_THAT(status_message(make_worker(config).status()),
              testing::AllOf(HasSubstr("MiB are missing"), HasSubstr("use --kv-cache-memory")));
  config.kv_cache_bytes = 0;
  config.parallel.tp_size = 2;
  EXPECT_THAT(status_message(make_worker(config).status()), HasSubstr("--tensor-parallel-size 2"));
}

class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "omnibus-limit-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(MemoryLimitTest, SmallestOfMachineAndEveryCgroupAbove) {
  EXPECT_EQ(memory_limit(root_), 1000 * 1024);
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(memory_limit(root_), 1000 * 1024);
  write("/sys/fs/cgroup/a/memory.max", "5000\n");
  EXPECT_EQ(memory_limit(root_), 5000);
  write("/sys/fs/cgroup/a/b/memory.max", "4000\n");
  EXPECT_EQ(memory_limit(root_), 4000);
  write("/sys/fs/cgroup/memory.max", "3000\n");
  EXPECT_EQ(memory_limit(root_), 3000);
}

TEST_F(MemoryLimitTest, VersionOneCgroups) {
  write("/proc/self/cgroup", "5:memory:/c\n2:cpu:/d\n");
  write("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limit(root_), 1000 * 1024);
  write("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "7000\n");
  EXPECT_EQ(memory_limit(root_), 7000);
}

TEST_F(MemoryLimitTest, NothingReadableIsZero) { EXPECT_EQ(memory_limit("/nonexistent"), 0); }

}  // namespace
}  // namespace omnibus
