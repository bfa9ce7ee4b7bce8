#include "omnibus/compute/layers/gated_mlp.h"

#include "omnibus/compute/loader/shard_view.h"

namespace omnibus {

Range ffn_share(int32_t ffn, const ParallelContext& parallel) {
  const UnitCuts units = UnitCuts::of_ffn(ffn);
  return unit_columns(units, parallel.tp_range(units.units()), ffn);
}

Status GatedMlp::load(WeightLoader& loader, const std::string& prefix, const GatedMlpSpec& spec,
                      const ParallelContext& parallel) {
  spec_ = spec;
  const UnitCuts units = UnitCuts::of_ffn(spec.ffn);
  const Range rows = ffn_share(spec.ffn, parallel);
  OMNIBUS_RETURN_IF_ERROR(norm_.load(loader, prefix + "ffn_norm.weight", spec.hidden, spec.eps));
  OMNIBUS_RETURN_IF_ERROR(gate_.load(loader, prefix + "ffn_gate", spec.ffn, spec.hidden, rows));
  OMNIBUS_RETURN_IF_ERROR(up_.load(loader, prefix + "ffn_up", spec.ffn, spec.hidden, rows));
  return down_.load(loader, prefix + "ffn_down", spec.hidden, spec.ffn, units,
                    parallel.tp_range(units.units()));
}

void GatedMlp::bind(const OpContext& ctx, const DecoderScratch& scratch) {
  scratch_ = scratch;
  scratch_.normed = narrow(scratch.normed, input_needs(ctx.mode));
  scratch_.ffn_act = narrow(scratch.ffn_act, output_needs(ctx.mode));
}

Status GatedMlp::forward(const OpContext& ctx, const ForwardBatch& batch) {
  if (gate_.weight().n > 0) {
    norm_.forward(ctx, scratch_.residual, nullptr, batch.rows(), &scratch_.normed);
    GateUpParams params;
    params.x = &scratch_.normed;
    params.gate = &gate_.weight();
    params.up = &up_.weight();
    params.activation = spec_.activation;
    params.scratch = scratch_.wide;
    params.out = &scratch_.ffn_act;
    gate_up_act(ctx, params);
  }
  return down_.forward_residual(ctx, batch, scratch_.ffn_act, scratch_.partial, scratch_.residual);
}

}  // namespace omnibus
