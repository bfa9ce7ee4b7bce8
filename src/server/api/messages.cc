#include "messages.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "field_rule.h"

namespace omnibus {
namespace {

constexpr size_t kMaxIgnoredNames = 16;

Status wrong(const std::string& param, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(param, fmt::format("Invalid '{}': {}", param, message), code);
}

Status missing(const std::string& param) {
  return invalid_field(param, fmt::format("Missing required parameter: '{}'", param),
                       "missing_required_parameter");
}

Status check_optional_string(const Json& message, const char* key, const std::string& place) {
  const auto it = message.find(key);
  if (it == message.end() || it->is_null() || it->is_string()) return {};
  return wrong(place + "." + key, "must be a string, got " + quote_value(*it), "invalid_type");
}

// Parts that this version can show to a model are text; the others are known and refused by name.
StatusOr<std::string> text_of_part(const Json& part, const std::string& place, const std::string& role) {
  if (!part.is_object()) return wrong(place, "must be an object, got " + quote_value(part), "invalid_type");
  const auto type = part.find("type");
  if (type == part.end()) return missing(place + ".type");
  if (!type->is_string()) return wrong(place + ".type", "must be a string", "invalid_type");
  const auto& name = type->get_ref<const std::string&>();
  for (const char* media : {"image_url", "input_audio", "file", "video_url", "audio_url"}) {
    if (name == media) {
      return invalid_field(place + ".type", fmt::format("'{}' parts are not supported by this model", name),
                           "unsupported_parameter");
    }
  }
  const bool refusal = name == "refusal" && role == "assistant";
  if (name != "text" && !refusal) return wrong(place + ".type", "unknown part type " + quote_value(*type));
  const char* key = refusal ? "refusal" : "text";
  const auto text = part.find(key);
  if (text == part.end()) return missing(place + "." + key);
  if (!text->is_string()) {
    return wrong(place + "." + key, "must be a string, got " + quote_value(*text), "invalid_type");
  }
  return text->get<std::string>();
}

// Where the fields go that have no effect.
struct Unknown {
  bool strict = false;
  std::vector<std::string>* ignored = nullptr;

  Status note(const std::string& name) const {
    if (!strict && ignored->size() >= kMaxIgnoredNames) return {};
    return note_unknown(name, strict, *ignored);
  }
};

Status check_keys(const Json& object, const std::string& place, std::initializer_list<std::string_view> known,
                  const Unknown& unknown) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || std::find(known.begin(), known.end(), key) != known.end()) continue;
    OMNIBUS_RETURN_IF_ERROR(unknown.note(place + "." + key));
  }
  return {};
}

Status normalize_content(Json& message, const std::string& place, const std::string& role,
                         const Unknown& unknown) {
  const auto content = message.find("content");
  const bool absent = content == message.end() || content->is_null();
  if (absent && role != "assistant") return missing(place + ".content");
  if (absent) {
    message["content"] = "";
    return {};
  }
  if (content->is_string()) return {};
  if (!content->is_array()) {
    return wrong(place + ".content", "must be a string or an array of parts, got " + quote_value(*content),
                 "invalid_type");
  }
  // Joined without a separator; a template that iterates over parts is given one part.
  std::string joined;
  for (size_t i = 0; i < content->size(); ++i) {
    const std::string where = fmt::format("{}.content[{}]", place, i);
    const Json& part = (*content)[i];
    OMNIBUS_ASSIGN_OR_RETURN(const std::string text, text_of_part(part, where, role));
    OMNIBUS_RETURN_IF_ERROR(check_keys(part, where, {"type", "text", "refusal"}, unknown));
    joined += text;
  }
  *content = std::move(joined);
  return {};
}

// Keys that carry something which is not built; each is fine while it carries nothing.
Status refuse_unsupported(const Json& message, const std::string& place) {
  for (const char* key : {"tool_calls", "function_call", "audio"}) {
    const auto it = message.find(key);
    if (it == message.end() || it->is_null() || (it->is_array() && it->empty())) continue;
    return invalid_field(place + "." + key, fmt::format("'{}' is not supported", key),
                         "unsupported_parameter");
  }
  return {};
}

Status normalize_message(Json& message, const std::string& place, const Unknown& unknown) {
  if (!message.is_object())
    return wrong(place, "must be an object, got " + quote_value(message), "invalid_type");
  const auto role_value = message.find("role");
  if (role_value == message.end() || role_value->is_null()) return missing(place + ".role");
  if (!role_value->is_string()) {
    return wrong(place + ".role", "must be a string, got " + quote_value(*role_value), "invalid_type");
  }
  const std::string role = role_value->get<std::string>();
  if (role == "tool" || role == "function") {
    return invalid_field(place + ".role", fmt::format("role '{}' is not supported", role),
                         "unsupported_parameter");
  }
  if (role != "system" && role != "developer" && role != "user" && role != "assistant") {
    return wrong(place + ".role",
                 "must be system, developer, user or assistant, got " + quote_value(*role_value));
  }
  if (role == "developer") *role_value = "system";
  for (const char* key : {"name", "refusal", "reasoning_content", "reasoning"}) {
    OMNIBUS_RETURN_IF_ERROR(check_optional_string(message, key, place));
  }
  OMNIBUS_RETURN_IF_ERROR(refuse_unsupported(message, place));
  OMNIBUS_RETURN_IF_ERROR(normalize_content(message, place, role, unknown));
  return check_keys(message, place,
                    {"role", "content", "name", "refusal", "tool_calls", "function_call", "audio",
                     "reasoning_content", "reasoning", "annotations"},
                    unknown);
}

}  // namespace

Status normalize_messages(Json& messages, bool strict, std::vector<std::string>& ignored) {
  const Unknown unknown{strict, &ignored};
  for (size_t i = 0; i < messages.size(); ++i) {
    OMNIBUS_RETURN_IF_ERROR(normalize_message(messages[i], fmt::format("messages[{}]", i), unknown));
  }
  return {};
}

}  // namespace omnibus
