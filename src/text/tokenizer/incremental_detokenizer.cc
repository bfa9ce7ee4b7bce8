#include "omnibus/text/tokenizer/incremental_detokenizer.h"

#include <utility>

#include "decoded_bytes.h"
#include "utf8.h"

namespace omnibus {

IncrementalDetokenizer::IncrementalDetokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                                               bool skip_special_tokens, bool continues)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens), at_start_(!continues) {}

std::string IncrementalDetokenizer::push(TokenId id) {
  held_.append(decoded_bytes(*tokenizer_, id, skip_special_tokens_, at_start_));
  std::string text;
  append_valid_utf8(held_, text, false);
  return text;
}

std::string IncrementalDetokenizer::flush() {
  std::string text;
  append_valid_utf8(held_, text, true);
  return text;
}

void append_valid_utf8(std::string& bytes, std::string& text, bool flush) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  const std::string_view all = bytes;
  size_t at = 0;
  while (at < all.size()) {
    const size_t invalid = find_invalid_utf8(all, at);
    text.append(all.substr(at, invalid - at));
    at = invalid;
    if (at == all.size()) break;
    const Utf8Step step = next_utf8(all.substr(at));
    if (step.truncated && !flush) break;
    text.append(kReplacement);
    at += step.length;
  }
  bytes.erase(0, at);
}

}  // namespace omnibus
