// POST /api/copy, DELETE /api/delete, HEAD and POST /api/blobs: changes to the store, by checked names and
// digests only.
#include <algorithm>

#include <fmt/format.h>

#include "api/request_body.h"
#include "handlers.h"
#include "model_names.h"
#include "ollama_body.h"

namespace omnibus {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";

StatusOr<const ModelStore*> store_of(const OllamaContext& context) {
  if (context.store()) return &*context.store();
  return absl::FailedPreconditionError("this server has no model store");
}

HttpResponse done(int status) {
  HttpResponse response;
  response.status = status;
  response.content_type.clear();
  return response;
}

// The next request knows the names as they are now. The change itself is made, whatever is wrong with others.
HttpResponse changed(const OllamaContext& context, const ModelBody& body) {
  (void)context.list_stored();
  HttpResponse response = done(200);
  add_ignored_fields(response.headers, body.ignored);
  return response;
}

// What the store will call it: no registry, no namespace, with a tag.
StatusOr<std::string> new_name(const std::string& asked) {
  const std::string name = name_with_tag(local_model_name(asked));
  const Status valid = check_model_name(name);
  if (!valid.ok()) return invalid_field("destination", status_message(valid));
  return name;
}

StatusOr<StoredModel> stored_model(const OllamaContext& context, const std::string& name) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto model, context.find_stored(name));
  if (model) return *model;
  if (context.is_served_name(name)) {
    return invalid_field(
        "model", fmt::format("model '{}' is served from a file outside the store", name_for_error(name)));
  }
  return ollama_model_not_found(name);
}

// The digest of the route's path; 400 unless it is exactly sha256: and 64 hex digits.
StatusOr<std::string> digest_of(const HttpRequest& request) {
  const std::string& text = request.path_parameter;
  if (text.starts_with(kDigestPrefix)) {
    const std::string digest = text.substr(kDigestPrefix.size());
    if (is_blob_digest(digest)) return digest;
  }
  return invalid_field("digest", "invalid digest: it must be sha256: and 64 lower-case hex digits");
}

// The last name of the file that is being served stays, and so does the one it is served by.
Status check_deletable(const OllamaContext& context, const StoredModel& model) {
  const std::string& served = context.config().model_digest;
  if (served.empty() || model.digest != served) return {};
  OMNIBUS_ASSIGN_OR_RETURN(const auto models, context.list_stored());
  const auto names =
      std::count_if(models.begin(), models.end(), [&](const StoredModel& m) { return m.digest == served; });
  if (names > 1 && !context.is_served_name(model.name)) return {};
  return with_detail(
      absl::FailedPreconditionError(fmt::format("model '{}' is being served by this process", model.name)),
      ErrorDetail{.http = 409, .type = {}, .code = "model_in_use", .param = "model"});
}

}  // namespace

StatusOr<HttpResponse> handle_ollama_copy(const OllamaContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelBody body, parse_model_body(request.body, ModelRoute::kCopy,
                                                                  context.api().config.strict_fields));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore* store, store_of(context));
  OMNIBUS_ASSIGN_OR_RETURN(std::string destination, new_name(body.destination));
  OMNIBUS_ASSIGN_OR_RETURN(const StoredModel source, stored_model(context, body.source));
  OMNIBUS_ASSIGN_OR_RETURN(const auto found, context.find_stored(destination));
  // An alias replaces nothing: the new name goes before it.
  if (found && same_model_name(found->name, destination)) {
    destination = found->name;  // a name in other letters is the same name
    if (found->digest != source.digest) OMNIBUS_RETURN_IF_ERROR(check_deletable(context, *found));
  }
  OMNIBUS_RETURN_IF_ERROR(store->copy(source.name, destination));
  return changed(context, body);
}

StatusOr<HttpResponse> handle_ollama_delete(const OllamaContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelBody body, parse_model_body(request.body, ModelRoute::kDelete,
                                                                  context.api().config.strict_fields));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore* store, store_of(context));
  OMNIBUS_ASSIGN_OR_RETURN(const StoredModel model, stored_model(context, body.model));
  OMNIBUS_RETURN_IF_ERROR(check_deletable(context, model));
  OMNIBUS_RETURN_IF_ERROR(store->remove(model.name));
  return changed(context, body);
}

StatusOr<HttpResponse> handle_ollama_find_blob(const OllamaContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const std::string digest, digest_of(request));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore* store, store_of(context));
  OMNIBUS_ASSIGN_OR_RETURN(const bool there, store->has_blob(digest));
  if (there) return done(200);
  return absl::NotFoundError(fmt::format("blob sha256:{} not found", digest));
}

StatusOr<HttpResponse> handle_ollama_add_blob(const OllamaContext& context, const HttpRequest& request) {
  OMNIBUS_ASSIGN_OR_RETURN(const std::string digest, digest_of(request));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore* store, store_of(context));
  OMNIBUS_ASSIGN_OR_RETURN(const bool there, store->has_blob(digest));
  if (there) return done(200);
  OMNIBUS_RETURN_IF_ERROR(store->add_blob(digest, request.body));
  return done(201);
}

}  // namespace omnibus
