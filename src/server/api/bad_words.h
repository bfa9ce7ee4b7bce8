// bad_words: words that an answer may not contain, as the token sequences that spell them.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

// vLLM's rule: each word as it stands at the start of a text, and as it stands behind a space where that is
// as many tokens and begins with another one. Another spelling of the same letters stays possible. Words are
// not empty.
std::vector<std::vector<TokenId>> bad_word_sequences(const Tokenizer& tokenizer,
                                                     const std::vector<std::string>& words);

}  // namespace omnibus
