#include "teacher_forcing.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "src/compute/worker/worker_sizes.h"

namespace omnibus {

StatusOr<std::unique_ptr<TeacherForcing>> TeacherForcing::create(std::shared_ptr<const GgufFile> file,
                                                                 const TeacherForcingOptions& options) {
  WorkerConfig config;
  config.model = std::move(file);
  config.numerics = options.numerics;
  config.cpu_isa = options.cpu_isa;
  config.threads = options.threads;
  config.max_model_len = options.max_tokens;
  config.max_num_batched_tokens = options.chunk;
  config.parallel = options.parallel;
  OMNIBUS_ASSIGN_OR_RETURN(InstanceSpec spec, resolve_sizes(config));
  OMNIBUS_ASSIGN_OR_RETURN(InstanceBytes bytes, plan_instance(spec));
  const int32_t blocks = (spec.max_model_len + kTokensPerBlock - 1) / kTokensPerBlock;
  auto instance = std::make_unique<ModelInstance>(std::move(spec), std::move(bytes));
  OMNIBUS_RETURN_IF_ERROR(instance->init());
  OMNIBUS_RETURN_IF_ERROR(instance->load(nullptr));
  OMNIBUS_RETURN_IF_ERROR(instance->allocate_kv(blocks));
  OMNIBUS_ASSIGN_OR_RETURN(StepArrays arrays, StepArrays::create(instance->bytes().groups, options.chunk));
  return std::unique_ptr<TeacherForcing>(
      new TeacherForcing(std::move(instance), std::move(arrays), options.tp));
}

// Logits of positions [begin, end) of the pass that began at position `base`.
Status TeacherForcing::project(int32_t base, int32_t begin, int32_t end, const Visit& visit) {
  LogitsHead& head = *instance_->model().head();
  for (int32_t p = begin; p < end; p += head.max_rows()) {
    const auto n = static_cast<size_t>(std::min(head.max_rows(), end - p));
    std::vector<int32_t> rows(n);
    for (size_t i = 0; i < n; ++i) rows[i] = p - base + static_cast<int32_t>(i);
    std::vector<HeadRequest> requests(n);
    for (HeadRequest& request : requests) request.full = true;
    std::vector<HeadOutput> outputs(n);
    OMNIBUS_RETURN_IF_ERROR(head.project(rows, requests, outputs));
    for (size_t i = 0; i < n; ++i) visit(p + static_cast<int32_t>(i), outputs[i].full);
  }
  return absl::OkStatus();
}

Status TeacherForcing::run(std::span<const TokenId> ids, int32_t first, const Visit& visit) {
  const InstanceSpec& spec = instance_->spec();
  const auto length = static_cast<int32_t>(ids.size());
  if (length > spec.max_model_len)
    return absl::InvalidArgumentError(
        fmt::format("{} tokens, the context holds {}", length, spec.max_model_len));
  for (TokenId id : ids)
    if (id < 0 || id >= spec.config.vocab_size)
      return absl::InvalidArgumentError(fmt::format("token id {} is outside the vocabulary", id));
  RequestState state;
  state.tokens.assign(ids.begin(), ids.end());
  state.tables.resize(instance_->bytes().groups.size());
  for (auto& table : state.tables)
    for (int32_t block = 0; block * kTokensPerBlock < length; ++block) table.push_back(block);
  const std::array<RequestState*, 1> states{&state};
  for (int32_t base = 0; base < length; base += spec.max_rows) {
    ScheduledRow row;
    row.base_computed = base;
    row.n_tokens = std::min(spec.max_rows, length - base);
    ForwardBatch batch = arrays_.build({&row, 1}, states);
    batch.tp = tp_;
    OMNIBUS_RETURN_IF_ERROR(instance_->model().forward(batch, instance_->caches(), nullptr));
    OMNIBUS_RETURN_IF_ERROR(project(base, std::max(base, first), base + row.n_tokens, visit));
  }
  return absl::OkStatus();
}

}  // namespace omnibus
