#include "api_context.h"

#include <algorithm>

#include <fmt/format.h>

#include "omnibus/server/http/json_body.h"

namespace omnibus {

Status ApiContext::check_model(const std::string& model) const {
  const auto& names = config.model_names;
  if (model.empty() || config.any_model || std::find(names.begin(), names.end(), model) != names.end())
    return {};
  return model_not_found(model);
}

Status ApiContext::model_not_found(const std::string& model) const {
  return with_detail(
      absl::NotFoundError(fmt::format("The model {} does not exist here; served: {}",
                                      quote_value(Json(model)), fmt::join(config.model_names, ", "))),
      ErrorDetail{.http = 404, .type = {}, .code = "model_not_found", .param = "model"});
}

std::string ApiContext::answer_model(const std::string& asked) const {
  return asked.empty() ? config.model_names.front() : asked;
}

}  // namespace omnibus
