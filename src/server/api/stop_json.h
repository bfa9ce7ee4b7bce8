// vLLM's stop_reason: the stop string or stop token id that ended a choice, null for EOS and length.
#pragma once

#include "omnibus/contract/request/request_output.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

inline Json stop_reason_json(const StopCause& cause) {
  if (const auto* text = std::get_if<std::string>(&cause)) return *text;
  if (const auto* id = std::get_if<TokenId>(&cause)) return *id;
  return nullptr;
}

}  // namespace omnibus
