#include "token_text.h"

#include <algorithm>
#include <utility>

namespace omnibus {

TokenText::TokenText(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
                     const ReasoningSplit& split)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      detokenizer_(tokenizer_, skip_special_tokens, /*continues=*/true) {
  if (split.format) splitter_.emplace(split);
}

void TokenText::push(TokenId id, int32_t token, std::vector<TextPiece>& pieces) {
  // A marker may be a special token. It is looked at before it is hidden, and no character goes on behind it.
  if (splitter_ && skip_special_tokens_ && tokenizer_->is_special(id)) {
    take(detokenizer_.flush(), token, false, pieces);
    take(std::string(tokenizer_->token_bytes(id)), token, true, pieces);
    return;
  }
  take(detokenizer_.push(id), token, false, pieces);
}

void TokenText::finish(int32_t token, std::vector<TextPiece>& pieces) {
  take(detokenizer_.flush(), token, false, pieces);
  if (!splitter_) return;
  splitter_->finish(runs_);
  for (const TextRun& run : runs_) cut(run, pieces);
  runs_.clear();
}

void TokenText::take(std::string text, int32_t token, bool is_hidden, std::vector<TextPiece>& pieces) {
  if (text.empty()) return;
  end_ += text.size();
  if (!splitter_) {
    const size_t size = text.size();
    pieces.push_back({TextPart::kContent, token, begin_, size, std::move(text)});
    begin_ = end_;
    return;
  }
  splitter_->feed(text, runs_);
  undecided_.push_back({std::move(text), token, is_hidden});
  for (const TextRun& run : runs_) cut(run, pieces);
  runs_.clear();
}

// A run of the splitter, token by token.
void TokenText::cut(const TextRun& run, std::vector<TextPiece>& pieces) {
  for (size_t left = run.size; left > 0;) {
    Span& span = undecided_.front();
    TextPiece piece{run.part, span.token, begin_, std::min(left, span.text.size()), {}};
    const bool is_text = run.part == TextPart::kContent || run.part == TextPart::kReasoning;
    if (is_text && !span.is_hidden) piece.text = span.text.substr(0, piece.size);
    span.text.erase(0, piece.size);
    left -= piece.size;
    begin_ += piece.size;
    if (span.text.empty()) undecided_.pop_front();
    pieces.push_back(std::move(piece));
  }
}

}  // namespace omnibus
