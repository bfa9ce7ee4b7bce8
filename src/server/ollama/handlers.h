// The handlers of Ollama's routes.
#pragma once

#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/reply.h"

#include "ollama_context.h"
#include "ollama_fields.h"

namespace omnibus {

// Text pool.
void handle_ollama_generation(const OllamaContext& context, OllamaRoute route, const HttpRequest& request,
                              const ReplyPtr& reply);

// Disk thread.
StatusOr<HttpResponse> handle_ollama_tags(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_ps(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_show(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_copy(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_delete(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_find_blob(const OllamaContext& context, const HttpRequest& request);
StatusOr<HttpResponse> handle_ollama_add_blob(const OllamaContext& context, const HttpRequest& request);

// Any thread.
HttpResponse handle_ollama_version(const OllamaContext& context);

}  // namespace omnibus
