#include "output_head.h"

#include <fmt/format.h>

#include "omnibus/compute/layers/linear_layers.h"

namespace omnibus {

Status OutputHead::load(WeightLoader& loader, const ModelContext& context, const LinearWeight* table) {
  const ModelConfig& c = context.config;
  OMNIBUS_RETURN_IF_ERROR(
      norm_.load(loader, "output_norm.weight", c.hidden_size, static_cast<float>(c.rms_norm_eps)));
  if (table != nullptr) {
    weight_ = *table;
    return absl::OkStatus();
  }
  ColumnParallelLinear output;
  OMNIBUS_RETURN_IF_ERROR(output.load(loader, "output", c.vocab_size, c.hidden_size,
                                      vocab_share(c.vocab_size, context.parallel)));
  weight_ = output.weight();
  return absl::OkStatus();
}

Status OutputHead::allocate(const ModelContext& context, const float* residual, Allocator& scratch) {
  ops_ = context.ops;
  residual_ = residual;
  max_rows_ = context.max_head_rows;
  OMNIBUS_ASSIGN_OR_RETURN(normed_, Activations::allocate(scratch, max_rows_, context.config.hidden_size,
                                                          weight_.needs(ops_.mode)));
  const size_t bytes = static_cast<size_t>(max_rows_) * static_cast<size_t>(weight_.n) * sizeof(float);
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer logits, scratch.allocate(bytes));
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer raw, scratch.allocate(bytes));
  logits_ = static_cast<float*>(logits.data);
  raw_logits_ = static_cast<float*>(raw.data);
  return absl::OkStatus();
}

Status OutputHead::project(std::span<const int32_t> rows, std::span<const HeadRequest> requests,
                           std::span<HeadOutput> outputs) {
  if (rows.size() > static_cast<size_t>(max_rows_) || rows.size() != requests.size() ||
      rows.size() != outputs.size())
    return absl::InternalError(fmt::format("head: {} rows, {} requests, {} outputs, room for {}", rows.size(),
                                           requests.size(), outputs.size(), max_rows_));
  norm_.forward(ops_, residual_, rows.data(), static_cast<int32_t>(rows.size()), &normed_);
  HeadParams params;
  params.weight = &weight_;
  params.x = &normed_;
  params.logits = logits_;
  params.raw_logits = raw_logits_;
  params.requests = requests;
  params.outputs = outputs;
  ::omnibus::head(ops_, params);
  return absl::OkStatus();
}

}  // namespace omnibus
