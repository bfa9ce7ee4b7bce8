// The bodies of POST /api/generate and /api/chat, validated field by field against one table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

#include "api/body_fields.h"
#include "ollama_options.h"

namespace omnibus {

enum class OllamaRoute : unsigned { kGenerate = 1, kChat = 2 };

struct OllamaFields {
  std::string model;
  std::string prompt, system;    // generate
  std::vector<TokenId> context;  // generate: the conversation so far
  bool raw = false;              // generate: no template
  Json messages;                 // chat: array; null: not given
  std::string chat_template;
  std::optional<bool> think;
  std::string think_level;  // "low" ...: think is true
  bool stream = true;
  bool truncate = false;
  bool logprobs = false;
  int32_t top_logprobs = 0;
  std::optional<int64_t> keep_alive;  // ns, see keep_alive.h
  OllamaOptions options;
};

struct ParsedOllama {
  OllamaFields fields;
  std::vector<std::string> ignored;  // names of what had no effect
};

// All that can be said without the model; a 400 names the field. Options that the client leaves out are the
// model's own, else Ollama's.
StatusOr<ParsedOllama> parse_ollama_body(const std::string& text, OllamaRoute route, bool strict,
                                         const SamplingDefaults& defaults = {});

// The fields of these bodies.
std::shared_ptr<const BodyFields> ollama_body_fields(OllamaRoute route);

}  // namespace omnibus
