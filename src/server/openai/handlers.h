// The handlers of OpenAI's routes. Those that take a body run on the text pool.
#pragma once

#include <memory>

#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/reply.h"
#include "omnibus/server/openai/openai_api.h"

#include "api/api_context.h"

namespace omnibus {

// Text pool.
void handle_chat(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply);
void handle_completion(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply);
// The ids of the prompt that these requests would run.
HttpResponse handle_chat_render(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_completion_render(const ApiContext& context, const HttpRequest& request);
// A chat request as it would be sent, answered with the length of its prompt; nothing runs.
HttpResponse handle_chat_input_tokens(const ApiContext& context, const HttpRequest& request);
// What /tokenize and /detokenize answer, or the client's mistake.
StatusOr<HttpResponse> tokenize(const ApiContext& context, const HttpRequest& request);
StatusOr<HttpResponse> detokenize(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_tokenize(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_detokenize(const ApiContext& context, const HttpRequest& request);
// The fields of their bodies.
std::shared_ptr<const BodyFields> token_body_fields(unsigned route);

// Any thread: they look things up and do no work.
HttpResponse handle_models(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_model(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_version(const ApiContext& context);
// The chat page for browsers, a line for everybody else.
HttpResponse handle_root(const HttpRequest& request);

}  // namespace omnibus
