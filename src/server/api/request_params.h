// What every door resolves alike once a body is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/server/http/http_message.h"

#include "api_context.h"

namespace omnibus {

// How many alternatives a position comes with: as asked, as long as this server gives as many
// (--max-logprobs), and never more than the vocabulary has; -1 asks for all. 400 names `param`.
Status resolve_logprob_count(const ApiContext& context, std::string_view param, int32_t& count);

// Alternatives of all positions of one prompt or answer together: each takes some hundred bytes as JSON.
inline constexpr int64_t kMaxAlternatives = int64_t{1} << 22;

// 400 when a prompt of so many tokens, or the longest answer to it, could come with more alternatives than
// that. `param` is what the door calls those of the answer.
Status check_alternatives(const ApiContext& context, std::string_view param, const SamplingParams& sampling,
                          size_t prompt_tokens);

// Whose cached prompts a request may share: those of the same key and, where a client gives one, the same
// salt (which has no '@').
std::string tenant_salt(const HttpRequest& request, std::string_view own = {});

// What an engine's request has of the HTTP request it came with, whatever the door: key, deadline, and the
// ids it has in the log. `salt`: as for tenant_salt.
void set_origin(const HttpRequest& http, std::string_view salt, GenerateRequest& request);

}  // namespace omnibus
