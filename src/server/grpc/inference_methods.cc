// The handlers of omnibus.v1.Inference: a protobuf message becomes the body that the HTTP door reads, and
// what comes back becomes protobuf again. Text pool.
#include <google/protobuf/util/json_util.h>
#include <omnibus/v1/inference.pb.h>

#include "openai/generation_request.h"
#include "openai/handlers.h"
#include "proto_json.h"
#include "rpc_error.h"
#include "rpc_methods.h"
#include "update_format.h"

namespace omnibus {
namespace {

template <typename Message>
StatusOr<Message> parse_message(const HttpRequest& request) {
  Message message;
  if (message.ParseFromString(request.body)) return message;
  return absl::InvalidArgumentError("The request is no " + Message::descriptor()->full_name());
}

// `request` with its message as JSON instead.
template <typename Message>
StatusOr<HttpRequest> as_json(HttpRequest request, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(const Message message, parse_message<Message>(request));
  OMNIBUS_ASSIGN_OR_RETURN(request.body, to_json_body(message, limit));
  return request;
}

// For Generate and Chat: an answer is a stream unless the client says otherwise.
template <typename Message>
StatusOr<HttpRequest> streaming_as_json(HttpRequest request, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(Message message, parse_message<Message>(request));
  if (!message.has_stream()) message.set_stream(true);
  OMNIBUS_ASSIGN_OR_RETURN(request.body, to_json_body(message, limit));
  return request;
}

UpdateFormatOptions format_options(const ApiContext& context, const char* prefix,
                                   const GenerationFields& fields,
                                   const std::vector<GenerateRequest>& requests) {
  UpdateFormatOptions format;
  format.id_prefix = prefix;
  format.model = context.answer_model(fields.model);
  format.include_reasoning = fields.include_reasoning;
  format.include_timings = fields.include_timings;
  format.prompt_logprobs = fields.prompt_logprobs.value_or(0);
  if (fields.return_token_ids) format.prompt_token_ids = requests.front().prompt_token_ids;
  return format;
}

Status generate(const ApiContext& context, HttpRequest rpc, const ReplyPtr& reply, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(const HttpRequest request,
                           streaming_as_json<v1::GenerateRequest>(std::move(rpc), limit));
  OMNIBUS_ASSIGN_OR_RETURN(PreparedCompletion prepared, prepare_completion(context, request));
  const GenerationFields& fields = prepared.parsed.fields;
  UpdateFormatOptions format = format_options(context, "cmpl-", fields, prepared.requests);
  format.logprobs = fields.logprob_count.has_value();
  Generation::start(context.engine, reply, make_update_format(std::move(format)), std::move(prepared.options),
                    std::move(prepared.requests));
  return {};
}

Status chat(const ApiContext& context, HttpRequest rpc, const ReplyPtr& reply, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(const HttpRequest request,
                           streaming_as_json<v1::ChatRequest>(std::move(rpc), limit));
  OMNIBUS_ASSIGN_OR_RETURN(PreparedChat prepared, prepare_chat(context, request));
  const GenerationFields& fields = prepared.parsed.fields;
  UpdateFormatOptions format = format_options(context, "chatcmpl-", fields, prepared.requests);
  format.logprobs = fields.logprobs;
  Generation::start(context.engine, reply, make_update_format(std::move(format)), std::move(prepared.options),
                    std::move(prepared.requests));
  return {};
}

// The HTTP door's answer as a message whose fields have the same names; it has fields that the message lacks.
template <typename Message>
StatusOr<HttpResponse> from_json(HttpResponse response) {
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(response.body, &message, options);
  if (!parsed.ok()) return absl::InternalError("An answer does not fit its message");
  response.content_type.clear();
  response.body = rpc_message(message.SerializeAsString()).body;
  return response;
}

StatusOr<HttpResponse> tokenize_rpc(const ApiContext& context, HttpRequest rpc, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(const HttpRequest request, as_json<v1::TokenizeRequest>(std::move(rpc), limit));
  OMNIBUS_ASSIGN_OR_RETURN(HttpResponse response, tokenize(context, request));
  return from_json<v1::TokenizeResponse>(std::move(response));
}

StatusOr<HttpResponse> detokenize_rpc(const ApiContext& context, HttpRequest rpc, uint64_t limit) {
  OMNIBUS_ASSIGN_OR_RETURN(v1::DetokenizeRequest message, parse_message<v1::DetokenizeRequest>(rpc));
  if (message.tokens().empty()) {  // as JSON it would be no list at all
    OMNIBUS_RETURN_IF_ERROR(context.check_model(message.model()));
    return rpc_message(v1::DetokenizeResponse().SerializeAsString());
  }
  OMNIBUS_ASSIGN_OR_RETURN(rpc.body, to_json_body(message, limit));
  OMNIBUS_ASSIGN_OR_RETURN(HttpResponse response, detokenize(context, rpc));
  return from_json<v1::DetokenizeResponse>(std::move(response));
}

StatusOr<HttpResponse> list_models_rpc(const ApiContext& context, HttpRequest rpc, uint64_t /*limit*/) {
  OMNIBUS_RETURN_IF_ERROR(parse_message<v1::ListModelsRequest>(rpc).status());
  return from_json<v1::ListModelsResponse>(handle_models(context, HttpRequest()));
}

StatusOr<HttpResponse> embed_rpc(const ApiContext& /*context*/, HttpRequest /*rpc*/, uint64_t /*limit*/) {
  return absl::UnimplementedError("Embed: this server has no model for embeddings");
}

}  // namespace

std::vector<RpcMethod> inference_methods(ApiCore& core, uint64_t limit) {
  std::vector<RpcMethod> methods;
  const auto add = [&](const char* name, ApiCore::Job job) {
    methods.emplace_back(std::string("/omnibus.v1.Inference/") + name, Scope::kInference,
                         core.pooled(std::move(job), render_rpc_error));
  };
  using Starter = Status (*)(const ApiContext&, HttpRequest, const ReplyPtr&, uint64_t);
  const auto streams = [&](const char* name, Starter start) {
    add(name, [start, limit](const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
      const Status status = start(*context, std::move(request), reply, limit);
      if (!status.ok()) reply->send(render_rpc_error(status, {}));
    });
  };
  using Answerer = StatusOr<HttpResponse> (*)(const ApiContext&, HttpRequest, uint64_t);
  const auto answers = [&](const char* name, Answerer answer) {
    add(name, [answer, limit](const ContextPtr& context, HttpRequest request, const ReplyPtr& reply) {
      auto response = answer(*context, std::move(request), limit);
      reply->send(response.ok() ? *std::move(response) : render_rpc_error(response.status(), {}));
    });
  };
  streams("Generate", generate);
  streams("Chat", chat);
  answers("Tokenize", tokenize_rpc);
  answers("Detokenize", detokenize_rpc);
  answers("ListModels", list_models_rpc);
  answers("Embed", embed_rpc);
  return methods;
}

}  // namespace omnibus
