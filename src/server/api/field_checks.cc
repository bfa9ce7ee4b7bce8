#include "field_checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace omnibus {
namespace {

constexpr size_t kMaxStops = 64, kMaxStringBytes = 256;
constexpr size_t kMaxPrompts = 256;
constexpr size_t kMaxKwargBytes = 4096;

Status wrong(std::string_view param, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(param, fmt::format("Invalid '{}': {}", param, message), code);
}

bool is_token_id(const Json& value) {
  if (value.is_number_integer()) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return number >= 0 && number <= std::numeric_limits<int32_t>::max() && number == std::floor(number);
}

Status check_short_string(const std::string& param, const Json& value) {
  if (!value.is_string()) return wrong(param, "must be a string, got " + quote_value(value), "invalid_type");
  const size_t size = value.get_ref<const std::string&>().size();
  if (size == 0) return wrong(param, "must not be empty");
  if (size > kMaxStringBytes) {
    return wrong(param, fmt::format("must have at most {} bytes, got {}", kMaxStringBytes, size),
                 "string_above_max_length");
  }
  return {};
}

Status check_short_strings(std::string_view name, const Json& value) {
  for (size_t i = 0; i < value.size(); ++i) {
    OMNIBUS_RETURN_IF_ERROR(check_short_string(fmt::format("{}[{}]", name, i), value[i]));
  }
  return {};
}

Status check_one_prompt(const std::string& param, const Json& value) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>().empty() ? wrong(param, "must not be empty") : Status();
  }
  if (!value.is_array()) {
    return wrong(param, "must be a string or an array of token ids, got " + quote_value(value),
                 "invalid_type");
  }
  if (value.empty()) return wrong(param, "must not be empty");
  return check_token_ids(param, value);
}

bool is_stream_option(std::string_view key) {
  return key == "include_usage" || key == "include_obfuscation" || key == "continuous_usage_stats";
}

}  // namespace

Status check_not_zero(std::string_view name, const Json& value) {
  if (value.get<double>() != 0) return {};
  return wrong(name, "must be at least 1, or -1 for as many as fit, got 0", "integer_below_min_value");
}

Status check_stop(std::string_view name, const Json& value) {
  if (value.is_string()) return check_short_string(std::string(name), value);
  if (!value.is_array()) {
    return wrong(name, "must be a string or an array of strings, got " + quote_value(value), "invalid_type");
  }
  if (value.size() > kMaxStops) {
    return wrong(name, fmt::format("must have at most {} items, got {}", kMaxStops, value.size()),
                 "array_above_max_length");
  }
  return check_short_strings(name, value);
}

Status check_bad_words(std::string_view name, const Json& value) { return check_short_strings(name, value); }

Status check_documents(std::string_view name, const Json& value) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i].is_object()) continue;
    return wrong(fmt::format("{}[{}]", name, i), "must be an object, got " + quote_value(value[i]),
                 "invalid_type");
  }
  return {};
}

Status check_truncation_side(std::string_view name, const Json& value) {
  if (value == "left" || value == "right") return {};
  return wrong(name, "must be left or right, got " + quote_value(value));
}

Status check_logit_bias(std::string_view name, const Json& value) {
  for (const auto& [key, bias] : value.items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      return wrong(name, fmt::format("keys must be token ids, got {}", quote_value(Json(key))));
    }
    if (!bias.is_number()) {
      return wrong(name, fmt::format("the bias of {} must be a number, got {}", id, quote_value(bias)),
                   "invalid_type");
    }
    if (const double number = bias.get<double>(); number < -100 || number > 100) {
      return wrong(name,
                   fmt::format("the bias of {} must be between -100 and 100, got {}", id, quote_value(bias)),
                   number > 0 ? "decimal_above_max_value" : "decimal_below_min_value");
    }
  }
  return {};
}

Status check_token_ids(std::string_view name, const Json& value) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (!is_token_id(value[i])) {
      return wrong(name, fmt::format("item {} must be a token id, got {}", i, quote_value(value[i])),
                   value[i].is_number() ? "invalid_value" : "invalid_type");
    }
  }
  return {};
}

Status check_prompt(std::string_view name, const Json& value) {
  if (!value.is_array() || value.empty() || value[0].is_number()) {
    return check_one_prompt(std::string(name), value);
  }
  if (value.size() > kMaxPrompts) {
    return wrong(name, fmt::format("must have at most {} prompts, got {}", kMaxPrompts, value.size()),
                 "array_above_max_length");
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i].type() != value[0].type()) {
      return wrong(fmt::format("{}[{}]", name, i),
                   "prompts must be all strings or all arrays of token ids, got " + quote_value(value[i]),
                   "invalid_type");
    }
    OMNIBUS_RETURN_IF_ERROR(check_one_prompt(fmt::format("{}[{}]", name, i), value[i]));
  }
  return {};
}

Status check_stream_options(std::string_view name, const Json& value) {
  for (const auto& [key, option] : value.items()) {
    if (is_stream_option(key) && !option.is_null() && !option.is_boolean()) {
      return wrong(fmt::format("{}.{}", name, key), "must be a boolean, got " + quote_value(option),
                   "invalid_type");
    }
  }
  return {};
}

Status check_template_kwargs(std::string_view name, const Json& value) {
  // What the server decides, and what would smuggle a template or code past --trust-request-chat-template.
  constexpr std::array<std::string_view, 12> kReserved = {
      "messages",  "tools",     "documents",       "tokenize",     "chat_template", "add_generation_prompt",
      "bos_token", "eos_token", "raise_exception", "strftime_now", "range",         "namespace"};
  for (const auto& [key, item] : value.items()) {
    const std::string param = fmt::format("{}.{}", name, key.substr(0, 64));
    const bool identifier =
        !key.empty() && key.size() <= 64 && !(key[0] >= '0' && key[0] <= '9') && key[0] != '_' &&
        std::all_of(key.begin(), key.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        });
    if (!identifier || std::find(kReserved.begin(), kReserved.end(), key) != kReserved.end()) {
      return wrong(param, "this name cannot be set");
    }
    if (!item.is_primitive())
      return wrong(param, "must be a string, number, boolean or null", "invalid_type");
    if (item.is_string() && item.get_ref<const std::string&>().size() > kMaxKwargBytes) {
      return wrong(param, fmt::format("must have at most {} bytes", kMaxKwargBytes),
                   "string_above_max_length");
    }
  }
  return {};
}

Status check_reasoning_effort(std::string_view name, const Json& value) {
  for (const char* known : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (value.get_ref<const std::string&>() == known) return {};
  }
  return wrong(name,
               "must be one of none, minimal, low, medium, high, xhigh, max, got " + quote_value(value));
}

Status check_cache_salt(std::string_view name, const Json& value) {
  const auto& salt = value.get_ref<const std::string&>();
  const bool ok = std::all_of(salt.begin(), salt.end(), [](char c) {
    return c >= 0x20 && c < 0x7F && c != '@' && c != '/' && c != '\\';
  });
  return ok ? Status()
            : wrong(name, "must be printable ASCII without @, / and \\, got " + quote_value(value));
}

}  // namespace omnibus
