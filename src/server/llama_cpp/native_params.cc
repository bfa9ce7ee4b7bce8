#include "native_params.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"
#include "omnibus/text/tokenizer/vocabulary_check.h"

#include "api/request_params.h"
#include "native_prompt.h"

namespace omnibus {
namespace {

constexpr size_t kMaxBiases = 65536;
constexpr int64_t kRandomSeed = 4294967295;  // llama.cpp's -1 as an unsigned number

Status wrong(std::string_view param, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(param, fmt::format("Invalid '{}': {}", param, message), code);
}

// A number, or false for "never".
StatusOr<float> bias_of(const Json& value) {
  if (value == false) return kNativeBan;
  if (!value.is_number()) {
    return wrong("logit_bias", "a bias must be a number or false, got " + quote_value(value), "invalid_type");
  }
  return static_cast<float>(std::clamp<double>(value.get<double>(), kNativeBan, -kNativeBan));
}

class BiasReader {
 public:
  BiasReader(const ApiContext& context, SamplingParams& sampling) : context_(context), sampling_(sampling) {}

  // [[id or text, bias], ...]
  Status read_list(const Json& list) {
    for (const Json& entry : list) {
      if (!entry.is_array() || entry.size() != 2) {
        return wrong("logit_bias", "entries must be pairs of token and bias, got " + quote_value(entry),
                     "invalid_type");
      }
      if (entry[0].is_string()) {
        OMNIBUS_RETURN_IF_ERROR(add_text(entry[0].get_ref<const std::string&>(), entry[1]));
      } else if (entry[0].is_number_integer()) {
        OMNIBUS_RETURN_IF_ERROR(add_id(entry[0].get<int64_t>(), entry[1]));
      } else {
        return wrong("logit_bias", "a token must be an id or a text, got " + quote_value(entry[0]),
                     "invalid_type");
      }
    }
    return {};
  }

  // {id or text: bias}
  Status read_map(const Json& map) {
    for (const auto& [key, value] : map.items()) {
      int64_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool is_id = error == std::errc() && end == key.data() + key.size();
      OMNIBUS_RETURN_IF_ERROR(is_id ? add_id(id, value) : add_text(key, value));
    }
    return {};
  }

 private:
  Status add_id(int64_t id, const Json& value) {
    OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("logit_bias", id, context_.tokenizer().vocab_size()));
    OMNIBUS_ASSIGN_OR_RETURN(const float bias, bias_of(value));
    if (sampling_.logit_bias.size() >= kMaxBiases) {
      return wrong("logit_bias", fmt::format("must be about at most {} tokens", kMaxBiases),
                   "array_above_max_length");
    }
    sampling_.logit_bias.emplace_back(static_cast<TokenId>(id), bias);
    return {};
  }

  // A text stands for each of its tokens.
  Status add_text(const std::string& text, const Json& value) {
    for (const TokenId id : encode_inner_text(context_, text)) OMNIBUS_RETURN_IF_ERROR(add_id(id, value));
    return {};
  }

  const ApiContext& context_;
  SamplingParams& sampling_;
};

Status resolve_bias(const ApiContext& context, NativeFields& f) {
  if (f.logit_bias.is_null()) return {};
  BiasReader reader(context, f.sampling);
  if (f.logit_bias.is_array()) return reader.read_list(f.logit_bias);
  if (f.logit_bias.is_object()) return reader.read_map(f.logit_bias);
  return wrong("logit_bias", "must be an array of pairs or an object, got " + quote_value(f.logit_bias),
               "invalid_type");
}

// llama.cpp's --seed is the seed of each request, not of a row of them.
void resolve_seed(const ApiContext& context, NativeFields& f) {
  if (f.seed && *f.seed != -1 && *f.seed != kRandomSeed) {
    f.sampling.seed = static_cast<uint64_t>(*f.seed);
  } else {
    // Its clients hold a seed in 32 bits.
    f.seed_drawn = f.seed || !context.config.seed;
    f.sampling.seed = f.seed_drawn ? random_seed() >> 33 : *context.config.seed;
  }
}

}  // namespace

Status resolve_native_fields(const ApiContext& context, NativeFields& f) {
  OMNIBUS_RETURN_IF_ERROR(context.check_model(f.model));
  if (!f.n_predict) f.n_predict = f.max_completion_tokens ? f.max_completion_tokens : f.max_tokens;
  if (!f.n_predict && context.config.default_max_tokens > 0) f.n_predict = context.config.default_max_tokens;
  if (!f.n_probs) f.n_probs = f.logprobs;
  if (!f.n_cmpl) f.n_cmpl = f.n;
  if (f.n_probs) OMNIBUS_RETURN_IF_ERROR(resolve_logprob_count(context, "n_probs", *f.n_probs));
  if (f.n_probs.value_or(0) > 0) f.sampling.logprobs = f.n_probs;
  // n_predict 0 asks for the prompt alone: the engine makes one token, which is dropped.
  const int64_t limit = f.n_predict.value_or(-1);
  f.sampling.max_tokens = limit < 0 ? 0 : static_cast<int32_t>(std::max<int64_t>(limit, 1));
  OMNIBUS_RETURN_IF_ERROR(resolve_bias(context, f));
  resolve_seed(context, f);
  return {};
}

}  // namespace omnibus
