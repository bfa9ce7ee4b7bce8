// The `options` of /api/generate and /api/chat: Ollama's names, defaults and bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/server/http/json_body.h"

#include "api/field_rule.h"

namespace omnibus {

struct OllamaOptions {
  OllamaOptions();

  SamplingParams sampling;             // with Ollama's defaults; seed and lengths are filled in later
  std::optional<int64_t> seed;         // absent: drawn
  std::optional<int64_t> num_predict;  // <= 0: until the context is full; absent: the server's default
  std::optional<int64_t> num_ctx;      // absent: the server's
  int32_t num_keep = 4;                // first tokens of a prompt that truncation leaves alone
};

// Checks `options` (an object) against the table. A value of the wrong type is 400 with Ollama's own words.
// `ignored` gets "options.NAME" of what has no effect.
Status take_options(Json& options, bool strict, OllamaOptions& into, std::vector<std::string>& ignored);

// The rules of that table.
std::vector<FieldRule> option_rules();

}  // namespace omnibus
