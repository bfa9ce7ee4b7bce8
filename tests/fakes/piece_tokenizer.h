// PieceTokenizer: a Tokenizer whose tokens have exactly the bytes a test says. Ids 0..255 are the bytes, then
// come the special tokens, then the distinct pieces. Encoding never uses pieces: text becomes byte tokens,
// and special tokens match in trusted segments only. So a test knows every id in advance.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus::fakes {

struct PieceVocabulary {
  std::vector<std::string> specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::string> pieces;  // any bytes; a piece that exists already keeps its id
  std::string eos = "<|im_end|>";   // must be one of specials; empty: none
  std::string bos;                  // must be one of specials; empty: none
  // Must be among specials. eos is added.
  std::vector<std::string> end_of_generation = {"<|endoftext|>"};
  std::string chat_template;  // copied into the spec
};

std::shared_ptr<const Tokenizer> make_piece_tokenizer(const PieceVocabulary& vocabulary);

}  // namespace omnibus::fakes
