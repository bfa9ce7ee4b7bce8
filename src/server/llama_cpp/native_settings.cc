#include "native_settings.h"

namespace omnibus {
namespace {

// A bias that no logit outweighs, JSON's null for minus infinity.
Json bias_json(float bias) { return bias <= kNativeBan ? Json(nullptr) : Json(bias); }

Json logit_bias_json(const ApiContext& context, const SamplingParams& sampling) {
  Json out = Json::array();
  const auto add = [&](TokenId id, const Json& bias) {
    Json entry;
    entry["token"] = id;
    entry["bias"] = bias;
    out.push_back(std::move(entry));
  };
  for (const auto& [id, bias] : sampling.logit_bias) add(id, bias_json(bias));
  if (sampling.ignore_eos) {
    for (const TokenId id : context.tokenizer().spec().end_of_generation) add(id, nullptr);
  }
  return out;
}

void add_absent_samplers(Json& out) {
  out["dynatemp_range"] = 0.0;
  out["dynatemp_exponent"] = 1.0;
  out["top_n_sigma"] = -1.0;
  out["xtc_probability"] = 0.0;
  out["xtc_threshold"] = 0.1;
  out["typical_p"] = 1.0;
  out["dry_multiplier"] = 0.0;
  out["dry_base"] = 1.75;
  out["dry_allowed_length"] = 2;
  out["dry_penalty_last_n"] = 0;
  out["dry_sequence_breakers"] = Json::array();
  out["mirostat"] = 0;
  out["mirostat_tau"] = 5.0;
  out["mirostat_eta"] = 0.1;
  out["adaptive_target"] = -1.0;
  out["adaptive_decay"] = 0.9;
}

}  // namespace

Json native_settings(const ApiContext& context, const NativeFields& f) {
  const SamplingParams& s = f.sampling;
  Json out;
  out["seed"] = s.seed;
  out["temperature"] = s.temperature;
  out["top_k"] = s.top_k;
  out["top_p"] = s.top_p;
  out["min_p"] = s.min_p;
  out["repeat_last_n"] = std::min(s.penalty_window, context.max_model_len());
  out["repeat_penalty"] = s.repetition_penalty;
  out["presence_penalty"] = s.presence_penalty;
  out["frequency_penalty"] = s.frequency_penalty;
  add_absent_samplers(out);
  out["stop"] = s.stop;
  out["max_tokens"] = f.n_predict.value_or(-1);
  out["n_predict"] = f.n_predict.value_or(-1);
  out["n_keep"] = 0;
  out["n_discard"] = 0;
  out["ignore_eos"] = s.ignore_eos;
  out["stream"] = f.stream;
  out["logit_bias"] = logit_bias_json(context, s);
  out["n_probs"] = f.n_probs.value_or(0);
  out["min_keep"] = 0;
  out["grammar"] = "";
  out["samplers"] = {"penalties", "temperature", "top_k", "top_p", "min_p"};
  out["timings_per_token"] = f.timings_per_token;
  out["post_sampling_probs"] = false;
  out["lora"] = Json::array();
  return out;
}

}  // namespace omnibus
