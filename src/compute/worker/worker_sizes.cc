#include "worker_sizes.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace omnibus {
namespace {

// Rows of one LogitsHead::project: enough for a full matmul tile, few enough to bound the logits held at a
// time. More rows go in turns.
constexpr int32_t kMaxHeadRows = 32;

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
int64_t whole_mib(int64_t bytes) { return bytes >> 20; }

int64_t blocks_of(int64_t tokens) { return (tokens + kTokensPerBlock - 1) / kTokensPerBlock; }

Status at_least_one(const char* flag, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} must be at least 1, not {}", flag, value));
}

// A cache that cannot hold one sequence of the configured length is refused with the length that it can.
Status check_one_sequence(int64_t blocks, int64_t block_bytes, const KVBudget& budget) {
  const int64_t needed = blocks_of(budget.max_model_len);
  if (blocks >= needed) return absl::OkStatus();
  const char* source =
      budget.kv_cache_bytes > 0 ? "--kv-cache-memory" : "the default KV cache (25 % of the memory limit)";
  const std::string shorter =
      blocks > 0 ? fmt::format("--max-model-len {} or ", blocks * kTokensPerBlock) : "";
  const int64_t fitting_mib = whole_mib(needed * block_bytes + (1 << 20) - 1);
  return absl::ResourceExhaustedError(fmt::format(
      "--max-model-len {} needs {:.1f} MiB of KV cache, {} gives {:.1f} MiB: use {}--kv-cache-memory {}",
      budget.max_model_len, mib(needed * block_bytes), source, mib(blocks * block_bytes), shorter,
      fitting_mib));
}

Status check_total(const MemoryPlan& plan, int64_t block_bytes, const KVBudget& budget) {
  if (budget.memory_limit <= 0 || plan.total() <= budget.memory_limit) return absl::OkStatus();
  const int64_t missing = plan.total() - budget.memory_limit;
  const int64_t kv = block_bytes * plan.kv.num_blocks;
  const int64_t room = budget.memory_limit - (plan.total() - kv);  // for KV
  const int64_t one_sequence = blocks_of(budget.max_model_len) * block_bytes;
  std::string remedy;
  if (room >= one_sequence) {
    remedy = fmt::format("use --kv-cache-memory {}", whole_mib(room));
  } else if (room >= block_bytes) {
    remedy = fmt::format("use --max-model-len {} and --kv-cache-memory {}",
                         room / block_bytes * kTokensPerBlock, std::max<int64_t>(1, whole_mib(room)));
  } else {
    remedy = "the model does not fit: a smaller one, or a smaller --max-num-batched-tokens";
  }
  return absl::ResourceExhaustedError(
      fmt::format("the memory plan takes {:.1f} MiB and the limit is {:.1f} MiB: {:.1f} MiB are missing; {}",
                  mib(plan.total()), mib(budget.memory_limit), mib(missing), remedy));
}

}  // namespace

StatusOr<InstanceSpec> resolve_sizes(const WorkerConfig& config) {
  if (config.model == nullptr) return absl::InvalidArgumentError("a worker needs a model file");
  OMNIBUS_RETURN_IF_ERROR(at_least_one("--max-num-seqs", config.max_num_seqs));
  OMNIBUS_RETURN_IF_ERROR(at_least_one("--max-num-batched-tokens", config.max_num_batched_tokens));
  InstanceSpec spec;
  spec.file = config.model;
  OMNIBUS_ASSIGN_OR_RETURN(spec.config, read_model_config(*config.model));
  const int32_t own = spec.config.context_length;
  if (config.max_model_len < 0 || config.max_model_len > own)
    return absl::InvalidArgumentError(
        fmt::format("--max-model-len {}: this model's own limit is {} tokens; use "
                    "--max-model-len {} at most",
                    config.max_model_len, own, own));
  spec.parallel = config.parallel;
  spec.device = config.device;
  spec.numerics = config.numerics;
  spec.cpu_isa = config.cpu_isa;
  spec.threads = config.threads > 0 ? config.threads : available_cores();
  spec.max_model_len = config.max_model_len > 0 ? config.max_model_len : own;
  spec.max_rows = config.max_num_batched_tokens;
  spec.max_head_rows = std::min(config.max_num_batched_tokens, kMaxHeadRows);
  return spec;
}

StatusOr<MemoryPlan> plan_memory(const InstanceBytes& bytes, const KVBudget& budget) {
  const int64_t block_bytes = bytes.kv_block();
  const int64_t wanted = blocks_of(budget.max_model_len) * budget.max_num_seqs;
  int64_t blocks = wanted;
  if (budget.kv_cache_bytes > 0) {
    blocks = budget.kv_cache_bytes / block_bytes;
  } else if (budget.memory_limit > 0) {
    blocks = std::min(wanted, budget.memory_limit / 4 / block_bytes);
  }
  blocks = std::min<int64_t>(blocks, std::numeric_limits<int32_t>::max() / kTokensPerBlock);
  OMNIBUS_RETURN_IF_ERROR(check_one_sequence(blocks, block_bytes, budget));
  MemoryPlan plan;
  plan.memory_limit = budget.memory_limit;
  plan.kv.groups = bytes.groups;
  plan.kv.num_blocks = static_cast<int32_t>(blocks);
  plan.arenas.push_back({"weights", bytes.weights, bytes.weights_note});
  plan.arenas.push_back(
      {"kv", blocks * block_bytes, fmt::format("{} blocks of {} tokens", blocks, kTokensPerBlock)});
  plan.arenas.push_back({"scratch", bytes.scratch, "temporaries of a step, rotary tables"});
  OMNIBUS_RETURN_IF_ERROR(check_total(plan, block_bytes, budget));
  return plan;
}

}  // namespace omnibus
