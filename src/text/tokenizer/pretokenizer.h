// Pretokenizer: cuts text into the pieces within which BPE may merge. Which patterns, and the other habits
// that go with them, is decided by the name in `tokenizer.ggml.pre`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"

#include "regex_splitter.h"

namespace omnibus {

class Pretokenizer {
 public:
  // Refuses an unknown name; the message lists the known ones.
  static StatusOr<Pretokenizer> create(std::string_view pre);

  // A piece that is a token as a whole is emitted without merging.
  bool ignore_merges() const { return ignore_merges_; }
  // The text is brought into normalisation form C first.
  bool normalises() const { return normalises_; }

  // Calls sink(std::string_view piece) for each piece of `text` (valid UTF-8), in order. The pieces joined
  // are the text.
  template <typename Sink>
  void split(std::string_view text, Sink&& sink) const {
    split_stage(0, text, sink);
  }

 private:
  // The patterns work one after the other: each splits every piece left by the one before, and both matches
  // and the gaps between them are pieces.
  template <typename Sink>
  void split_stage(size_t stage, std::string_view text, Sink& sink) const {
    if (stage == stages_.size()) {
      sink(text);
      return;
    }
    for (size_t at = 0; at < text.size();) {
      const ByteRange match = stages_[stage].find(text, at);
      if (match.begin > at) split_stage(stage + 1, text.substr(at, match.begin - at), sink);
      if (match.end > match.begin) {
        split_stage(stage + 1, text.substr(match.begin, match.end - match.begin), sink);
      }
      at = match.end;
    }
  }

  std::vector<RegexSplitter> stages_;
  bool ignore_merges_ = false;
  bool normalises_ = false;
};

}  // namespace omnibus
