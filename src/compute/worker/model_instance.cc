#include "model_instance.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/log.h"
#include "omnibus/compute/models/model_registry.h"
#include "omnibus/compute/ops/device_ops.h"
#include "omnibus/store/model_files/load_guard.h"

namespace omnibus {
namespace {

constexpr double kMiB = 1 << 20;

StatusOr<ActivationMode> activation_mode(Numerics numerics) {
  switch (numerics) {
    case Numerics::kFast:
      return ActivationMode::kInt8;
    case Numerics::kF32:
      return ActivationMode::kF32;
    case Numerics::kFine:
      break;
  }
  return absl::UnimplementedError("--numerics fine is not built yet: use fast or f32");
}

DType kv_dtype(Numerics numerics) { return numerics == Numerics::kF32 ? DType::kF32 : DType::kBF16; }

ModelContext model_context(const InstanceSpec& spec, const OpContext& ops) {
  ModelContext context;
  context.config = spec.config;
  context.ops = ops;
  context.parallel = spec.parallel;
  context.kv_dtype = kv_dtype(spec.numerics);
  context.max_rows = spec.max_rows;
  context.max_model_len = spec.max_model_len;
  context.max_head_rows = spec.max_head_rows;
  return context;
}

std::string note_of(const LoadStats& stats) {
  std::string note;
  for (const auto& [type, count] : stats.type_count)
    note += fmt::format("{}{} x {}", note.empty() ? "" : ", ", count, type);
  return note;
}

}  // namespace

StatusOr<InstanceBytes> plan_instance(const InstanceSpec& spec) {
  OMNIBUS_ASSIGN_OR_RETURN(const ActivationMode mode, activation_mode(spec.numerics));
  MetaTrace trace;
  OMNIBUS_ASSIGN_OR_RETURN(
      OpContext ops, make_op_context(Device{DeviceKind::kMeta, 0}, spec.cpu_isa, mode, nullptr, &trace));
  ops.planned_threads = spec.threads;
  OMNIBUS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make_model(model_context(spec, ops)));
  const auto weights = make_meta_allocator("weights"), scratch = make_meta_allocator("scratch");
  StateDict state(spec.file);
  WeightLoader loader(state, ops, *weights, nullptr);
  OMNIBUS_RETURN_IF_ERROR(model->load(loader, *scratch));
  InstanceBytes bytes;
  bytes.weights = static_cast<int64_t>(weights->used_bytes());
  bytes.scratch = static_cast<int64_t>(scratch->used_bytes());
  bytes.weights_note = note_of(loader.stats());
  bytes.groups = model->kv_spec();
  return bytes;
}

ModelInstance::ModelInstance(InstanceSpec spec, InstanceBytes bytes)
    : spec_(std::move(spec)), bytes_(std::move(bytes)) {}

Status ModelInstance::init() {
  OMNIBUS_ASSIGN_OR_RETURN(const ActivationMode mode, activation_mode(spec_.numerics));
  if (spec_.device.kind == DeviceKind::kCpu) {
    // Pinning pays when the threads fill the machine; a part of it is better left to the system's scheduler.
    OMNIBUS_ASSIGN_OR_RETURN(pool_, ComputePool::create(spec_.threads, spec_.threads == available_cores()));
  }
  OMNIBUS_ASSIGN_OR_RETURN(ops_, make_op_context(spec_.device, spec_.cpu_isa, mode, pool_.get(), &trace_));
  OMNIBUS_ASSIGN_OR_RETURN(model_, make_model(model_context(spec_, ops_)));
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Allocator>> ModelInstance::make_allocator(const char* name, int64_t bytes) const {
  if (spec_.device.kind == DeviceKind::kMeta) return make_meta_allocator(name);
  return make_arena_allocator(name, static_cast<size_t>(bytes));
}

Status ModelInstance::load(const WeightLoader::Progress& progress) {
  if (model_ == nullptr) return absl::FailedPreconditionError("load before init");
  OMNIBUS_ASSIGN_OR_RETURN(weights_, make_allocator("weights", bytes_.weights));
  OMNIBUS_ASSIGN_OR_RETURN(scratch_, make_allocator("scratch", bytes_.scratch));
  const SteadyClock clock;
  const MonotonicNs start = clock.now_ns();
  const LoadGuard guard(spec_.file);
  StateDict state(spec_.file);
  WeightLoader loader(state, ops_, *weights_, progress);
  OMNIBUS_RETURN_IF_ERROR(model_->load(loader, *scratch_));
  if (weights_used() != bytes_.weights || scratch_used() != bytes_.scratch)
    return absl::InternalError(
        fmt::format("memory plan: weights {} planned, {} taken; scratch {} planned, {} taken", bytes_.weights,
                    weights_used(), bytes_.scratch, scratch_used()));
  const double seconds = std::max(static_cast<double>(clock.now_ns() - start), 1.0) / 1e9;
  const auto source = static_cast<double>(loader.stats().source_bytes);
  log_info("weights: {} ({}) packed into {:.1f} MiB in {:.2f} s, {:.2f} GB/s, kernels {}", spec_.config.name,
           note_of(loader.stats()), static_cast<double>(bytes_.weights) / kMiB, seconds,
           source / 1e9 / seconds, describe(ops_));
  return absl::OkStatus();
}

Status ModelInstance::allocate_kv(int32_t num_blocks) {
  if (weights_ == nullptr) return absl::FailedPreconditionError("allocate_kv before load");
  OMNIBUS_ASSIGN_OR_RETURN(kv_, make_allocator("kv", bytes_.kv_block() * num_blocks));
  OMNIBUS_ASSIGN_OR_RETURN(caches_, model_->allocate_kv(num_blocks, *kv_));
  return absl::OkStatus();
}

}  // namespace omnibus
