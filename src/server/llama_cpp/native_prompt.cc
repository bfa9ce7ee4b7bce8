#include "native_prompt.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/text/tokenizer/vocabulary_check.h"

#include "api/number_fields.h"
#include "api/prompt.h"

namespace omnibus {
namespace {

using Ids = std::vector<TokenId>;

Status wrong(const std::string& place, std::string_view message, std::string_view code = "invalid_value") {
  return invalid_field(place, fmt::format("Invalid '{}': {}", place, message), code);
}

Status check_text(const std::string& place, const std::string& text) {
  if (text.size() <= kMaxPromptBytes) return {};
  return with_detail(absl::InvalidArgumentError(
                         fmt::format("'{}' is longer than {} MiB of text", place, kMaxPromptBytes >> 20)),
                     ErrorDetail{.http = 413, .type = {}, .code = "string_above_max_length", .param = place});
}

StatusOr<Ids> encode_text(const ApiContext& context, const std::string& place, const std::string& text) {
  OMNIBUS_RETURN_IF_ERROR(check_text(place, text));
  Ids ids = context.tokenizer().encode(text, /*trusted=*/true, EncodeOptions{.add_special_tokens = true});
  if (ids.empty()) return wrong(place, "must not be empty");
  return ids;
}

StatusOr<TokenId> id_of(const ApiContext& context, const std::string& place, const Json& item) {
  OMNIBUS_RETURN_IF_ERROR(
      check_field({.name = place, .type = FieldType::kInteger, .min = -kInt32Max, .max = kInt32Max}, item));
  const int64_t id = integer_of(item);
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary(place, id, context.tokenizer().vocab_size()));
  return static_cast<TokenId>(id);
}

// Ids and texts in turn; a text in front is the beginning of the prompt and gets its BOS.
StatusOr<Ids> encode_mixed(const ApiContext& context, const std::string& place, const Json& items) {
  if (items.empty()) return wrong(place, "must not be empty");
  Ids ids;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", place, i);
    if (items[i].is_string()) {
      const auto& text = items[i].get_ref<const std::string&>();
      OMNIBUS_RETURN_IF_ERROR(check_text(where, text));
      const Ids more =
          context.tokenizer().encode(text, /*trusted=*/true, EncodeOptions{.add_special_tokens = i == 0});
      ids.insert(ids.end(), more.begin(), more.end());
    } else {
      OMNIBUS_ASSIGN_OR_RETURN(const TokenId id, id_of(context, where, items[i]));
      ids.push_back(id);
    }
  }
  return ids;
}

StatusOr<Ids> encode_object(const ApiContext& context, const std::string& place, const Json& object) {
  if (const auto media = object.find("multimodal_data"); media != object.end() && !media->empty()) {
    return invalid_field(place + ".multimodal_data", "'multimodal_data' is not supported by this model",
                         "unsupported_parameter");
  }
  const auto text = object.find("prompt_string");
  if (text == object.end()) {
    return invalid_field(place + ".prompt_string",
                         fmt::format("Missing required parameter: '{}.prompt_string'", place),
                         "missing_required_parameter");
  }
  if (!text->is_string()) {
    return wrong(place + ".prompt_string", "must be a string, got " + quote_value(*text), "invalid_type");
  }
  return encode_text(context, place + ".prompt_string", text->get_ref<const std::string&>());
}

StatusOr<Ids> encode_one(const ApiContext& context, const std::string& place, const Json& prompt) {
  if (prompt.is_string()) return encode_text(context, place, prompt.get_ref<const std::string&>());
  if (prompt.is_array()) return encode_mixed(context, place, prompt);
  if (prompt.is_object()) return encode_object(context, place, prompt);
  return wrong(
      place, "must be a string, an array of token ids and strings, or an object, got " + quote_value(prompt),
      "invalid_type");
}

// A number in the list makes it one prompt; without any it is a list of prompts.
bool is_list_of_prompts(const Json& prompt) {
  return prompt.is_array() && !prompt.empty() &&
         std::none_of(prompt.begin(), prompt.end(), [](const Json& item) { return item.is_number(); });
}

}  // namespace

StatusOr<std::vector<Ids>> encode_native_prompts(const ApiContext& context, const Json& prompt) {
  std::vector<Ids> prompts;
  if (!is_list_of_prompts(prompt)) {
    OMNIBUS_ASSIGN_OR_RETURN(Ids ids, encode_one(context, "prompt", prompt));
    prompts.push_back(std::move(ids));
    return prompts;
  }
  if (prompt.size() > kMaxNativePrompts) {
    return wrong("prompt",
                 fmt::format("must have at most {} prompts, got {}", kMaxNativePrompts, prompt.size()),
                 "array_above_max_length");
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    OMNIBUS_ASSIGN_OR_RETURN(Ids ids, encode_one(context, fmt::format("prompt[{}]", i), prompt[i]));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

Ids encode_inner_text(const ApiContext& context, const std::string& text) {
  return context.tokenizer().encode(text, /*trusted=*/true, EncodeOptions{.add_special_tokens = false});
}

}  // namespace omnibus
