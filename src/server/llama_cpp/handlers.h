// The handlers of llama.cpp's routes.
#pragma once

#include <memory>

#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/reply.h"

#include "api/api_context.h"

namespace omnibus {

// Text pool.
void handle_native_completion(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply);
void handle_infill(const ContextPtr& context, HttpRequest request, const ReplyPtr& reply);
HttpResponse handle_apply_template(const ApiContext& context, const HttpRequest& request);
// The fields of its body.
std::shared_ptr<const BodyFields> template_body_fields();

// Any thread: they look things up and do no work.
HttpResponse handle_props(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_slots(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_native_models(const ApiContext& context, const HttpRequest& request);
HttpResponse handle_lora_adapters(const ApiContext& context, const HttpRequest& request);
// POST /slots/{id}: 501 for a slot, 404 for what is no number.
HttpResponse handle_slot_action(const ApiContext& context, const HttpRequest& request);
// 501, saying what is not there.
HttpResponse handle_not_supported(const ApiContext& context, const HttpRequest& request);

}  // namespace omnibus
