// POST /tokenize and /detokenize, as vLLM and llama.cpp have them: which of the two is meant shows in the
// fields.
#include <fmt/format.h>

#include "omnibus/text/tokenizer/vocabulary_check.h"

#include "api/body_fields.h"
#include "api/field_checks.h"
#include "api/json_response.h"
#include "api/logprob_json.h"
#include "api/messages.h"
#include "api/prompt.h"
#include "api/request_body.h"
#include "generation_fields.h"
#include "handlers.h"

namespace omnibus {
namespace {

struct TokenFields {
  std::string model;
  std::optional<std::string> prompt;
  Json messages;
  Json tokens;
  std::optional<bool> add_special_tokens;
  bool return_token_strs = false;
  std::optional<bool> add_generation_prompt, continue_final_message;
  std::string chat_template;
  Json chat_template_kwargs;
  // llama.cpp's form.
  std::optional<std::string> content;
  bool add_special = false, parse_special = true, with_pieces = false;
};

using F = TokenFields;

std::span<const Field<F>> token_field_table() {
  static const auto unsupported = [](std::string_view name, std::string_view neutral) {
    return Field<F>{
        {.name = name, .routes = kOnTokenize, .verdict = Verdict::kUnsupported, .neutral = neutral}, nullptr};
  };
  static const std::vector<Field<F>> table = {
      {{.name = "model",
        .routes = kOnTokenize | kOnDetokenize,
        .type = FieldType::kString,
        .min = 1,
        .max = 256},
       [](F& f, Json& v) { f.model = v.get<std::string>(); }},
      {{.name = "prompt", .routes = kOnTokenize, .type = FieldType::kString},
       [](F& f, Json& v) { f.prompt = v.get<std::string>(); }},
      {{.name = "messages", .routes = kOnTokenize, .type = FieldType::kArray, .min = 1, .max = 16384},
       [](F& f, Json& v) { f.messages = std::move(v); }},
      {{.name = "tokens",
        .routes = kOnDetokenize,
        .type = FieldType::kArray,
        .max = 1048576,
        .check = check_token_ids},
       [](F& f, Json& v) { f.tokens = std::move(v); }},
      {{.name = "add_special_tokens", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.add_special_tokens = v.get<bool>(); }},
      {{.name = "return_token_strs", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.return_token_strs = v.get<bool>(); }},
      {{.name = "add_generation_prompt", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.add_generation_prompt = v.get<bool>(); }},
      {{.name = "continue_final_message", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.continue_final_message = v.get<bool>(); }},
      {{.name = "chat_template", .routes = kOnTokenize, .type = FieldType::kString, .min = 1},
       [](F& f, Json& v) { f.chat_template = v.get<std::string>(); }},
      {{.name = "chat_template_kwargs",
        .routes = kOnTokenize,
        .type = FieldType::kObject,
        .max = 64,
        .check = check_template_kwargs},
       [](F& f, Json& v) { f.chat_template_kwargs = std::move(v); }},
      {{.name = "content", .routes = kOnTokenize, .type = FieldType::kString},
       [](F& f, Json& v) { f.content = v.get<std::string>(); }},
      {{.name = "add_special", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.add_special = v.get<bool>(); }},
      {{.name = "parse_special", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.parse_special = v.get<bool>(); }},
      {{.name = "with_pieces", .routes = kOnTokenize, .type = FieldType::kBool},
       [](F& f, Json& v) { f.with_pieces = v.get<bool>(); }},
      unsupported("tools", "[]"),
  };
  return table;
}

using ParsedTokens = ParsedBody<TokenFields>;

StatusOr<ParsedTokens> parse_request(const ApiContext& context, unsigned route, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(
      ParsedTokens parsed,
      parse_body(request, token_field_table(), FieldOptions{route, context.config.strict_fields}));
  OMNIBUS_RETURN_IF_ERROR(context.check_model(parsed.fields.model));
  return parsed;
}

StatusOr<std::vector<TokenId>> encode(const ApiContext& context, ParsedTokens& parsed) {
  TokenFields& f = parsed.fields;
  if (f.prompt.has_value() != f.messages.is_null()) {
    return invalid_field("prompt", "Exactly one of 'prompt' and 'messages' is needed",
                         "missing_required_parameter");
  }
  if (f.prompt) {
    if (f.prompt->empty()) return std::vector<TokenId>();
    OMNIBUS_ASSIGN_OR_RETURN(auto prompts,
                             encode_prompts(context, Json(*f.prompt), f.add_special_tokens.value_or(true)));
    return std::move(prompts.front().ids);
  }
  OMNIBUS_RETURN_IF_ERROR(normalize_messages(f.messages, context.config.strict_fields, parsed.ignored));
  ChatPromptInput input;
  input.messages = std::move(f.messages);
  input.kwargs = std::move(f.chat_template_kwargs);
  input.chat_template = f.chat_template;
  OMNIBUS_RETURN_IF_ERROR(resolve_ending(context, f.add_generation_prompt, f.continue_final_message, input));
  input.add_special_tokens = f.add_special_tokens.value_or(false);
  OMNIBUS_ASSIGN_OR_RETURN(ChatPrompt prompt, encode_chat(context, std::move(input), parsed.ignored));
  return std::move(prompt.ids);
}

// A token's text, or its bytes where they are no whole characters.
Json piece_json(const Tokenizer& tokenizer, TokenId id) {
  const std::string text = tokenizer.decode(std::span(&id, 1), /*skip_special_tokens=*/false);
  const std::string_view bytes = tokenizer.token_bytes(id);
  if (text.find("\uFFFD") == std::string::npos) return bytes;
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

// llama.cpp's form: {content} to {tokens}.
StatusOr<HttpResponse> tokenize_content(const ApiContext& context, ParsedTokens& parsed) {
  const TokenFields& f = parsed.fields;
  if (f.prompt || !f.messages.is_null()) {
    return invalid_field("content", "Exactly one of 'content', 'prompt' and 'messages' is needed");
  }
  if (f.content->size() > kMaxPromptBytes) {
    return with_detail(
        absl::InvalidArgumentError(
            fmt::format("'content' is longer than {} MiB of text", kMaxPromptBytes >> 20)),
        ErrorDetail{.http = 413, .type = {}, .code = "string_above_max_length", .param = "content"});
  }
  const Tokenizer& tokenizer = context.tokenizer();
  const std::vector<TokenId> ids =
      tokenizer.encode(*f.content, f.parse_special, EncodeOptions{f.add_special});
  Json tokens = Json::array();
  for (const TokenId id : ids) {
    if (f.with_pieces) {
      tokens.push_back({{"id", id}, {"piece", piece_json(tokenizer, id)}});
    } else {
      tokens.push_back(id);
    }
  }
  Json body;
  body["tokens"] = std::move(tokens);
  return json_response(body, parsed.ignored);
}

}  // namespace

StatusOr<HttpResponse> tokenize(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedTokens parsed, parse_request(context, kOnTokenize, request));
  if (parsed.fields.content) return tokenize_content(context, parsed);
  OMNIBUS_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, encode(context, parsed));
  Json body;
  body["count"] = ids.size();
  body["max_model_len"] = context.max_model_len();
  body["tokens"] = ids;
  body["token_strs"] = nullptr;
  if (parsed.fields.return_token_strs) {
    Json& strings = body["token_strs"] = Json::array();
    for (const TokenId id : ids) {
      strings.push_back(logprob_token_text(id, std::string(context.tokenizer().token_bytes(id)), false));
    }
  }
  return json_response(body, parsed.ignored);
}

StatusOr<HttpResponse> detokenize(const ApiContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(ParsedTokens parsed, parse_request(context, kOnDetokenize, request));
  const TokenFields& fields = parsed.fields;
  if (fields.tokens.is_null()) {
    return invalid_field("tokens", "Missing required parameter: 'tokens'", "missing_required_parameter");
  }
  std::vector<TokenId> ids;
  for (const Json& item : fields.tokens) ids.push_back(static_cast<TokenId>(integer_of(item)));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("tokens", ids, context.tokenizer().vocab_size()));
  Json body;
  const std::string text = context.tokenizer().decode(ids, /*skip_special_tokens=*/false);
  body["prompt"] = text;   // vLLM's name
  body["content"] = text;  // llama.cpp's
  return json_response(body, parsed.ignored);
}

std::shared_ptr<const BodyFields> token_body_fields(unsigned route) {
  return body_fields(token_field_table(), route);
}

HttpResponse handle_tokenize(const ApiContext& context, const HttpRequest& request) {
  auto response = tokenize(context, request);
  return response.ok() ? *std::move(response) : render_openai_error(response.status(), request.path);
}

HttpResponse handle_detokenize(const ApiContext& context, const HttpRequest& request) {
  auto response = detokenize(context, request);
  return response.ok() ? *std::move(response) : render_openai_error(response.status(), request.path);
}

}  // namespace omnibus
