// POST /completion, /completions and /infill: body to fields, fields to prompts, prompts to engine. All that
// can be wrong with a request is found here, before the first byte of its answer.
#include <fmt/format.h>

#include "omnibus/server/llama_cpp/llama_cpp_api.h"

#include "api/generation.h"
#include "api/request_body.h"
#include "api/request_params.h"
#include "handlers.h"
#include "infill.h"
#include "llama_cpp_error.h"
#include "native_fields.h"
#include "native_format.h"
#include "native_params.h"
#include "native_prompt.h"
#include "native_settings.h"

namespace omnibus {
namespace {

// More choices than this at once are a mistake or an attack: prompts x n_cmpl.
constexpr size_t kMaxChoices = 1024;

using Prompts = std::vector<std::vector<TokenId>>;
using ParsedRequest = ParsedBody<NativeFields>;

Status check_prompts(const ApiContext& context, const Prompts& prompts, const NativeFields& fields) {
  const int32_t n_cmpl = fields.n_cmpl.value_or(1);
  if (prompts.size() * static_cast<size_t>(n_cmpl) > kMaxChoices) {
    return invalid_field(
        "n_cmpl",
        fmt::format("Invalid 'n_cmpl': prompts times n_cmpl must be at most {}, got {} times {}", kMaxChoices,
                    prompts.size(), n_cmpl),
        "integer_above_max_value");
  }
  for (const std::vector<TokenId>& ids : prompts) {
    const auto tokens = static_cast<int64_t>(ids.size());
    if (tokens + 1 > context.max_model_len()) return context_exceeded(tokens, context.max_model_len());
    OMNIBUS_RETURN_IF_ERROR(check_alternatives(context, "n_probs", fields.sampling, ids.size()));
  }
  return {};
}

StatusOr<Prompts> encode_prompts_of(const ApiContext& context, unsigned route, const NativeFields& fields) {
  if (route == kOnInfill) {
    OMNIBUS_ASSIGN_OR_RETURN(std::vector<TokenId> ids, encode_infill(context, fields));
    return Prompts{std::move(ids)};
  }
  if (fields.prompt.is_null()) {
    return invalid_field("prompt", "Missing required parameter: 'prompt'", "missing_required_parameter");
  }
  return encode_native_prompts(context, fields.prompt);
}

NativeFormatOptions format_options(const ApiContext& context, const NativeFields& fields,
                                   const Prompts& prompts) {
  NativeFormatOptions format;
  format.model = context.answer_model(fields.model);
  format.settings = native_settings(context, fields);
  format.seed_per_prompt = fields.seed_drawn;
  for (const std::vector<TokenId>& ids : prompts) {
    format.prompts.push_back(context.tokenizer().decode(ids, /*skip_special_tokens=*/false));
  }
  format.choices_per_prompt = fields.n_cmpl.value_or(1);
  format.n_predict = fields.n_predict.value_or(-1);
  format.probabilities = fields.sampling.logprobs.has_value();
  format.return_tokens = fields.return_tokens;
  format.timings_per_token = fields.timings_per_token;
  format.response_fields = fields.response_fields;
  return format;
}

Status start(const ApiContext& context, unsigned route, const HttpRequest& request, const ReplyPtr& reply) {
  NativeFields initial;
  context.config.defaults.apply_to(initial.sampling);
  OMNIBUS_ASSIGN_OR_RETURN(ParsedRequest parsed,
                           parse_body(request, native_field_table(),
                                      FieldOptions{route, context.config.strict_fields}, std::move(initial)));
  NativeFields& fields = parsed.fields;
  OMNIBUS_RETURN_IF_ERROR(resolve_native_fields(context, fields));
  OMNIBUS_ASSIGN_OR_RETURN(Prompts prompts, encode_prompts_of(context, route, fields));
  const int32_t n_cmpl = fields.n_cmpl.value_or(1);
  OMNIBUS_RETURN_IF_ERROR(check_prompts(context, prompts, fields));

  GenerationOptions options;
  options.stream = fields.stream;
  options.choices_per_prompt = n_cmpl;
  options.prompt_only = fields.n_predict == 0;
  options.param = "prompt";
  add_ignored_fields(options.headers, parsed.ignored);
  auto format = make_native_format(format_options(context, fields, prompts));
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest& one = requests.emplace_back();
    one.prompt_token_ids = std::move(prompts[i]);
    one.sampling = fields.sampling;
    // Each prompt of a list draws like a request of its own.
    if (fields.seed_drawn) one.sampling.seed += i;
    one.n = n_cmpl;
    set_origin(request, {}, one);
  }
  Generation::start(context.engine, reply, std::move(format), std::move(options), std::move(requests));
  return {};
}

}  // namespace

void handle_native_completion(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start(*context, kOnNativeCompletion, request, reply);
  if (!status.ok()) reply->send(render_llama_cpp_error(status, request.path));
}

void handle_infill(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
  const Status status = start(*context, kOnInfill, request, reply);
  if (!status.ok()) reply->send(render_llama_cpp_error(status, request.path));
}

}  // namespace omnibus
