#include "ollama_options.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "api/body_fields.h"
#include "api/field_checks.h"

namespace omnibus {
namespace {

using O = OllamaOptions;
using T = FieldType;
constexpr unsigned kRoute = 1;
constexpr double kInt32Max = 2147483647.0;
// A repetition penalty beyond these turns logits into infinities.
constexpr double kPenaltyMin = 1e-6, kPenaltyMax = 1e6;
// Any larger temperature is a uniform draw.
constexpr double kMaxTemperature = 100;

int32_t to_int32(const Json& v) { return static_cast<int32_t>(integer_of(v)); }

Field<O> number(std::string_view name, double min, double max, void (*take)(O&, Json&)) {
  return {{.name = name, .routes = kRoute, .type = T::kNumber, .min = min, .max = max}, take};
}

Field<O> integer(std::string_view name, double min, double max, void (*take)(O&, Json&)) {
  return {{.name = name, .routes = kRoute, .type = T::kInteger, .min = min, .max = max}, take};
}

// How a server is to use its hardware, or what only a refused sampler reads.
Field<O> hint(std::string_view name, FieldType type) {
  return {{.name = name, .routes = kRoute, .type = type, .verdict = Verdict::kIgnored}, nullptr};
}

Field<O> unsupported(std::string_view name, std::string_view neutral) {
  return {{.name = name, .routes = kRoute, .verdict = Verdict::kUnsupported, .neutral = neutral}, nullptr};
}

std::span<const Field<O>> option_table() {
  static const std::vector<Field<O>> table = {
      number("temperature", 0, kMaxTemperature,
             [](O& o, Json& v) { o.sampling.temperature = v.get<float>(); }),
      integer("top_k", -1, kInt32Max, [](O& o, Json& v) { o.sampling.top_k = to_int32(v); }),
      number("top_p", 0, 1, [](O& o, Json& v) { o.sampling.top_p = v.get<float>(); }),
      number("min_p", 0, 1, [](O& o, Json& v) { o.sampling.min_p = v.get<float>(); }),
      number("repeat_penalty", kPenaltyMin, kPenaltyMax,
             [](O& o, Json& v) { o.sampling.repetition_penalty = v.get<float>(); }),
      integer("repeat_last_n", -1, kInt32Max,
              [](O& o, Json& v) {
                const int32_t last = to_int32(v);
                o.sampling.penalty_window = last < 0 ? INT32_MAX : last;
              }),
      number("presence_penalty", -2, 2, [](O& o, Json& v) { o.sampling.presence_penalty = v.get<float>(); }),
      number("frequency_penalty", -2, 2,
             [](O& o, Json& v) { o.sampling.frequency_penalty = v.get<float>(); }),
      integer("seed", -kNoBound, kNoBound, [](O& o, Json& v) { o.seed = integer_of(v); }),
      integer("num_predict", -2, kInt32Max, [](O& o, Json& v) { o.num_predict = integer_of(v); }),
      integer("num_ctx", 1, kInt32Max, [](O& o, Json& v) { o.num_ctx = integer_of(v); }),
      integer("num_keep", -1, kInt32Max, [](O& o, Json& v) { o.num_keep = to_int32(v); }),
      {{.name = "stop", .routes = kRoute, .type = T::kArray, .check = check_stop},
       [](O& o, Json& v) { o.sampling.stop = v.get<std::vector<std::string>>(); }},
      hint("num_batch", T::kInteger),
      hint("num_gpu", T::kInteger),
      hint("main_gpu", T::kInteger),
      hint("num_thread", T::kInteger),
      hint("use_mmap", T::kBool),
      hint("use_mlock", T::kBool),
      hint("numa", T::kBool),
      hint("low_vram", T::kBool),
      hint("f16_kv", T::kBool),
      hint("mirostat_tau", T::kNumber),
      hint("mirostat_eta", T::kNumber),
      unsupported("mirostat", "0"),
      unsupported("typical_p", "1"),
      unsupported("tfs_z", "1"),
  };
  return table;
}

// What Ollama calls the types, after those of its own fields.
const char* type_word(FieldType type) {
  switch (type) {
    case T::kBool:
      return "boolean";
    case T::kInteger:
      return "integer";
    case T::kNumber:
      return "float32";
    case T::kString:
      return "string";
    default:
      return "array";
  }
}

Status in_ollamas_words(const Status& error, std::span<const Field<O>> table) {
  ErrorDetail detail = error_detail(error);
  if (detail.code != "invalid_type") return error;
  for (const Field<O>& field : table) {
    if (field.rule.name != detail.param) continue;
    return with_detail(absl::InvalidArgumentError(fmt::format("option \"{}\" must be of type {}",
                                                              detail.param, type_word(field.rule.type))),
                       detail);
  }
  return error;
}

}  // namespace

OllamaOptions::OllamaOptions() {
  sampling.temperature = 0.8F;
  sampling.top_k = 40;
  sampling.top_p = 0.9F;
  sampling.penalty_window = 64;
}

std::vector<FieldRule> option_rules() { return rules_on(option_table(), kRoute); }

Status take_options(Json& options, bool strict, OllamaOptions& into, std::vector<std::string>& ignored) {
  std::vector<std::string> names;
  const Status taken = take_fields(options, option_table(), FieldOptions{kRoute, strict}, into, names);
  if (!taken.ok()) return in_ollamas_words(taken, option_table());
  for (const std::string& name : names) ignored.push_back("options." + name);
  return {};
}

}  // namespace omnibus
