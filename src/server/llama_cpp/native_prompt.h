// The prompts that llama.cpp's clients write: text, ids, both mixed, {prompt_string}, or a list of these.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

#include "api/api_context.h"

namespace omnibus {

inline constexpr size_t kMaxNativePrompts = 256;

// One element per prompt. Text may spell control tokens, and gets a BOS where the model wants one. 400 names
// the place in `prompt`: another shape, media, nothing in it, an id outside the vocabulary.
StatusOr<std::vector<std::vector<TokenId>>> encode_native_prompts(const ApiContext& context,
                                                                  const Json& prompt);

// Text that stands inside a prompt: no BOS.
std::vector<TokenId> encode_inner_text(const ApiContext& context, const std::string& text);

}  // namespace omnibus
