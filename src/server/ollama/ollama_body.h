// The bodies of Ollama's API: as JSON, and those that name models and little else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

#include "api/body_fields.h"

namespace omnibus {

// Bytes of a model's name in a request.
inline constexpr double kMaxModelName = 512;

// An object; 400 "missing request body" for an empty one, else 400 saying what is wrong.
StatusOr<Json> parse_ollama_json(const std::string& text);

enum class ModelRoute : unsigned { kShow = 1, kDelete = 2, kCopy = 4 };

struct ModelBody {
  std::string model;                 // show, delete: never empty
  bool verbose = false;              // show
  std::string source, destination;   // copy: never empty
  std::vector<std::string> ignored;  // names of what had no effect
};

// `strict`: a field that means nothing here is 400.
StatusOr<ModelBody> parse_model_body(const std::string& text, ModelRoute route, bool strict);

// The fields of these bodies.
std::shared_ptr<const BodyFields> model_body_fields(ModelRoute route);

}  // namespace omnibus
