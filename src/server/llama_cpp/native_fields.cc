#include "native_fields.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/field_checks.h"
#include "api/number_fields.h"

namespace omnibus {
namespace {

using F = NativeFields;
using T = FieldType;
constexpr unsigned kBoth = kOnNativeCompletion | kOnInfill;
constexpr size_t kMaxResponseFields = 64, kMaxStops = 64;
// The order in which omnibus applies what a request may set.
constexpr std::array<std::string_view, 5> kSamplers = {"penalties", "temperature", "top_k", "top_p", "min_p"};

Status unsupported(std::string_view name, std::string_view why) {
  return invalid_field(name, fmt::format("'{}' is not supported: {}", name, why), "unsupported_parameter");
}

// Switches a sampler off for any value up to 0.
Status check_off(std::string_view name, const Json& value) {
  return value.get<double>() <= 0 ? Status() : unsupported(name, "values up to 0 turn it off");
}

Status check_negative(std::string_view name, const Json& value) {
  return value.get<double>() < 0 ? Status() : unsupported(name, "negative values turn it off");
}

Status check_typical(std::string_view name, const Json& value) {
  return value.get<double>() >= 1 ? Status() : unsupported(name, "1 turns it off");
}

// 0 and 1 ask for nothing: one token is kept in any case.
Status check_min_keep(std::string_view name, const Json& value) {
  return value.get<double>() <= 1 ? Status() : unsupported(name, "samplers keep at least one token");
}

Status check_lora(std::string_view name, const Json& value) {
  const bool off = std::all_of(value.begin(), value.end(), [](const Json& entry) {
    const auto scale = entry.is_object() ? entry.find("scale") : entry.end();
    return entry.is_object() && scale != entry.end() && scale->is_number() && scale->get<double>() == 0;
  });
  return off ? Status() : unsupported(name, "this server has no adapters");
}

// A chain can be asked for if it is the one there is: all others would change the answer.
Status check_samplers(std::string_view name, const Json& value) {
  const bool same =
      value.is_array() && std::equal(value.begin(), value.end(), kSamplers.begin(), kSamplers.end(),
                                     [](const Json& a, std::string_view b) { return a == b; });
  if (same) return {};
  return unsupported(name, fmt::format("the chain is always {}", fmt::join(kSamplers, ", ")));
}

Status check_response_fields(std::string_view name, const Json& value) {
  for (const Json& item : value) {
    if (!item.is_string()) {
      return invalid_field(
          name, fmt::format("Invalid '{}': must be an array of strings, got {}", name, quote_value(item)),
          "invalid_type");
    }
  }
  return {};
}

// A string, or strings; empty ones ask for nothing.
Status check_native_stop(std::string_view name, const Json& value) {
  if (!value.is_array()) return value == "" ? Status() : check_stop(name, value);
  if (value.size() > kMaxStops) return check_stop(name, value);
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == "") continue;
    const std::string place = fmt::format("{}[{}]", name, i);
    if (!value[i].is_string()) {
      return invalid_field(
          place, fmt::format("Invalid '{}': must be a string, got {}", place, quote_value(value[i])),
          "invalid_type");
    }
    OMNIBUS_RETURN_IF_ERROR(check_stop(place, value[i]));
  }
  return {};
}

void take_stop(F& f, Json& v) {
  f.sampling.stop.clear();
  for (const Json& item : v.is_array() ? v : Json::array({v})) {
    if (item != "") f.sampling.stop.push_back(item.get<std::string>());
  }
}

using Table = std::vector<Field<F>>;

void add_used(Table& t, FieldRule rule, void (*take)(F&, Json&)) {
  rule.routes = rule.routes == 0 ? kBoth : rule.routes;
  t.push_back({rule, take});
}

void add_inputs(Table& t) {
  add_used(t, {.name = "model", .type = T::kString, .min = 1, .max = 256},
           [](F& f, Json& v) { f.model = v.get<std::string>(); });
  add_used(t, {.name = "prompt"}, [](F& f, Json& v) { f.prompt = std::move(v); });
  add_used(t, {.name = "input_prefix", .routes = kOnInfill, .type = T::kString},
           [](F& f, Json& v) { f.input_prefix = std::move(v); });
  add_used(t, {.name = "input_suffix", .routes = kOnInfill, .type = T::kString},
           [](F& f, Json& v) { f.input_suffix = std::move(v); });
  add_used(t, {.name = "input_extra", .routes = kOnInfill, .type = T::kArray, .max = 1024},
           [](F& f, Json& v) { f.input_extra = std::move(v); });
}

// Where llama.cpp clamps, so does this table: a value beyond the bound means the bound.
void add_sampling(Table& t) {
  add_used(t, {.name = "temperature", .type = T::kNumber}, [](F& f, Json& v) {
    f.sampling.temperature = static_cast<float>(std::clamp(v.get<double>(), 0.0, 1e6));
  });
  add_used(t, {.name = "top_k", .type = T::kInteger}, [](F& f, Json& v) {
    f.sampling.top_k = static_cast<int32_t>(std::clamp<int64_t>(integer_of(v), 0, INT32_MAX));
  });
  add_used(t, {.name = "top_p", .type = T::kNumber}, [](F& f, Json& v) {
    f.sampling.top_p = static_cast<float>(std::clamp(v.get<double>(), 0.0, 1.0));
  });
  add_used(t, {.name = "min_p", .type = T::kNumber}, [](F& f, Json& v) {
    f.sampling.min_p = static_cast<float>(std::clamp(v.get<double>(), 0.0, 1.0));
  });
  add_used(t, {.name = "repeat_penalty", .type = T::kNumber, .min = kPenaltyMin, .max = kPenaltyMax},
           [](F& f, Json& v) { f.sampling.repetition_penalty = v.get<float>(); });
  add_used(t, {.name = "repeat_last_n", .type = T::kInteger, .min = -1, .max = kInt32Max}, [](F& f, Json& v) {
    const auto last = static_cast<int32_t>(integer_of(v));
    f.sampling.penalty_window = last < 0 ? INT32_MAX : last;
  });
  add_used(t, {.name = "presence_penalty", .type = T::kNumber, .min = -kPenaltyMax, .max = kPenaltyMax},
           [](F& f, Json& v) { f.sampling.presence_penalty = v.get<float>(); });
  add_used(t, {.name = "frequency_penalty", .type = T::kNumber, .min = -kPenaltyMax, .max = kPenaltyMax},
           [](F& f, Json& v) { f.sampling.frequency_penalty = v.get<float>(); });
  add_used(t, {.name = "seed", .type = T::kInteger}, [](F& f, Json& v) { f.seed = integer_of(v); });
  add_used(t, {.name = "logit_bias"}, [](F& f, Json& v) { f.logit_bias = std::move(v); });
}

void add_stopping(Table& t) {
  const auto limit = [&](const char* name, void (*take)(F&, Json&)) {
    add_used(t, {.name = name, .type = T::kInteger, .min = -1, .max = kInt32Max}, take);
  };
  limit("n_predict", [](F& f, Json& v) { f.n_predict = integer_of(v); });
  limit("max_completion_tokens", [](F& f, Json& v) { f.max_completion_tokens = integer_of(v); });
  limit("max_tokens", [](F& f, Json& v) { f.max_tokens = integer_of(v); });
  add_used(t, {.name = "stop", .check = check_native_stop}, take_stop);
  add_used(t, {.name = "ignore_eos", .type = T::kBool},
           [](F& f, Json& v) { f.sampling.ignore_eos = v.get<bool>(); });
}

void add_output(Table& t) {
  add_used(t, {.name = "stream", .type = T::kBool}, [](F& f, Json& v) { f.stream = v.get<bool>(); });
  add_used(t, {.name = "return_tokens", .type = T::kBool},
           [](F& f, Json& v) { f.return_tokens = v.get<bool>(); });
  add_used(t, {.name = "timings_per_token", .type = T::kBool},
           [](F& f, Json& v) { f.timings_per_token = v.get<bool>(); });
  add_used(t,
           {.name = "response_fields",
            .type = T::kArray,
            .max = kMaxResponseFields,
            .check = check_response_fields},
           [](F& f, Json& v) { f.response_fields = v.get<std::vector<std::string>>(); });
  add_used(t, {.name = "n_probs", .type = T::kInteger, .min = 0, .max = kInt32Max},
           [](F& f, Json& v) { f.n_probs = to_int32(v); });
  add_used(t, {.name = "logprobs", .type = T::kInteger, .min = 0, .max = kInt32Max},
           [](F& f, Json& v) { f.logprobs = to_int32(v); });
  add_used(t, {.name = "n_cmpl", .type = T::kInteger, .min = 1, .max = 128},
           [](F& f, Json& v) { f.n_cmpl = to_int32(v); });
  add_used(t, {.name = "n", .type = T::kInteger, .min = 1, .max = 128},
           [](F& f, Json& v) { f.n = to_int32(v); });
}

// Hints that change no answer here: how to cache, where to compute; and settings of samplers that are off.
void add_ignored(Table& t) {
  for (const char* name : {"cache_prompt",
                           "id_slot",
                           "n_keep",
                           "n_discard",
                           "n_cache_reuse",
                           "sse_ping_interval",
                           "backend_sampling",
                           "grammar_lazy",
                           "grammar_triggers",
                           "preserved_tokens",
                           "dynatemp_exponent",
                           "xtc_threshold",
                           "dry_base",
                           "dry_allowed_length",
                           "dry_penalty_last_n",
                           "dry_sequence_breakers",
                           "mirostat_tau",
                           "mirostat_eta",
                           "adaptive_decay",
                           "stream_options",
                           "user"}) {
    t.push_back({{.name = name, .routes = kBoth, .verdict = Verdict::kIgnored}, nullptr});
  }
}

// Known, not built: refused by name unless the value asks for nothing.
void add_unsupported(Table& t) {
  const auto refused = [&](const char* name, std::string_view neutral) {
    t.push_back(
        {{.name = name, .routes = kBoth, .verdict = Verdict::kUnsupported, .neutral = neutral}, nullptr});
  };
  refused("grammar", R"("")");
  refused("json_schema", "");
  for (const char* name : {"post_sampling_probs", "return_progress", "verbose"}) refused(name, "false");
  for (const char* name : {"n_indent", "mirostat", "xtc_probability", "dry_multiplier", "dynatemp_range"}) {
    refused(name, "0");
  }
  const auto off_by = [&](FieldRule rule) {
    rule.routes = kBoth;
    t.push_back({rule, nullptr});
  };
  off_by({.name = "top_n_sigma", .type = T::kNumber, .check = check_off});
  off_by({.name = "t_max_predict_ms", .type = T::kInteger, .check = check_off});
  off_by({.name = "adaptive_target", .type = T::kNumber, .max = 1, .check = check_negative});
  off_by({.name = "typical_p", .type = T::kNumber, .check = check_typical});
  off_by({.name = "min_keep", .type = T::kInteger, .min = 0, .check = check_min_keep});
  off_by({.name = "lora", .type = T::kArray, .check = check_lora});
  off_by({.name = "samplers", .check = check_samplers});
}

Table make_table() {
  Table table;
  add_inputs(table);
  add_sampling(table);
  add_stopping(table);
  add_output(table);
  add_ignored(table);
  add_unsupported(table);
  return table;
}

}  // namespace

std::span<const Field<NativeFields>> native_field_table() {
  static const Table table = make_table();
  return table;
}

}  // namespace omnibus
