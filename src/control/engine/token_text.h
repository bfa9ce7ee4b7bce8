// TokenText: from the token ids of one sequence to pieces of text, each of one token and one part (answer or
// reasoning). Positions count bytes of the text with its markers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/text/template/reasoning_splitter.h"
#include "omnibus/text/tokenizer/incremental_detokenizer.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

struct TextPiece {
  TextPart part = TextPart::kContent;
  int32_t token = 0;  // which token the text came with; the first is 1
  size_t begin = 0;   // position
  size_t size = 0;    // bytes
  std::string text;   // what is shown of it: `size` bytes or nothing
};

// Each call appends the pieces that are certain by then; joined, they are all the text in order.
class TokenText {
 public:
  TokenText(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
            const ReasoningSplit& split);

  void push(TokenId id, int32_t token, std::vector<TextPiece>& pieces);
  // No token follows.
  void finish(int32_t token, std::vector<TextPiece>& pieces);
  // Where the text of the next token begins.
  size_t end() const { return end_; }

 private:
  struct Span {
    std::string text;
    int32_t token = 0;
    bool is_hidden = false;
  };
  void take(std::string text, int32_t token, bool is_hidden, std::vector<TextPiece>& pieces);
  void cut(const TextRun& run, std::vector<TextPiece>& pieces);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool skip_special_tokens_;
  IncrementalDetokenizer detokenizer_;
  std::optional<ReasoningSplitter> splitter_;
  std::deque<Span> undecided_;
  std::vector<TextRun> runs_;
  size_t begin_ = 0;  // position of what is undecided
  size_t end_ = 0;
};

}  // namespace omnibus
