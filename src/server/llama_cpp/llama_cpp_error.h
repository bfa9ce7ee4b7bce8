// The words that llama.cpp's clients know errors by.
#pragma once

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// The same error with llama.cpp's type: authentication_error, not_found_error, exceed_context_size_error.
Status as_llama_cpp_error(const Status& error);

// llama.cpp's error object: OpenAI's, and of context_exceeded() also n_prompt_tokens and n_ctx.
Json llama_cpp_error_json(const Status& error);

// 400: a prompt that leaves no room for an answer.
Status context_exceeded(int64_t prompt_tokens, int64_t context_tokens);

// 501 not_supported_error: `what` is not there, or is switched off.
Status not_supported(std::string_view what);

}  // namespace omnibus
