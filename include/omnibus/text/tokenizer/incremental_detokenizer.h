// IncrementalDetokenizer: ids in, whole UTF-8 characters out. Every split of the same ids into calls gives
// the same joined text, and no call ever returns part of a character.
#pragma once

#include <memory>
#include <string>

#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

// One per sequence; one thread at a time.
class IncrementalDetokenizer {
 public:
  // `continues`: what comes stands behind other text, as an answer does behind its prompt; a space in front
  // is then part of it.
  IncrementalDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
                         bool continues = false);

  // Text that became certain with this token; bytes of an unfinished character are held back.
  std::string push(TokenId id);
  // What is still held back, as U+FFFD. At the end, or where no character can go on.
  std::string flush();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  bool at_start_;     // SPM: the first leading space belongs to add_space_prefix
  std::string held_;  // bytes of an unfinished character
};

// Appends `bytes` to `text`, replacing each maximal invalid subpart by U+FFFD (Unicode 15, §3.9, best
// practice). Bytes at the end that may still become a character stay in `bytes`; the rest is consumed.
void append_valid_utf8(std::string& bytes, std::string& text, bool flush);

}  // namespace omnibus
