// SequenceOutput: from the token ids of one sequence to what its client sees: text in whole characters, split
// into reasoning and answer, stop strings, logprobs, usage. A state machine without threads or I/O. Its
// joined output does not depend on how the ids are cut into events.
//
// A token is accounted for (token_ids, usage) when it is certain to which part its text belongs. It counts as
// reasoning when any of its text is reasoning or one of its markers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/control/scheduler/scheduler.h"
#include "omnibus/text/tokenizer/tokenizer.h"

#include "stop_matcher.h"
#include "token_text.h"

namespace omnibus {

struct SequenceOutputParams {
  RequestId parent_id = 0;
  int32_t index = 0;
  int32_t prompt_tokens = 0;
  SamplingParams sampling;
  std::shared_ptr<const StopAutomaton> stops;
  ReasoningSplit reasoning;
  std::shared_ptr<const Tokenizer> tokenizer;
};

class SequenceOutput {
 public:
  explicit SequenceOutput(SequenceOutputParams params);

  // Call until finished(); ids must be in the vocabulary.
  RequestOutput take(const SequenceEvent& event);
  bool finished() const { return finished_; }
  // Set when a stop string ended the sequence: how many output tokens count.
  std::optional<int32_t> stopped_at() const { return stopped_at_; }

 private:
  struct Token {
    TokenId id = kNoToken;
    size_t begin = 0, end = 0;  // positions of its text
    bool is_reasoning = false;
  };
  // Text that is known but not delivered.
  struct Shown {
    bool is_reasoning = false;
    size_t begin = 0;  // position
    std::string text;
  };
  struct PendingLogprobs {
    size_t begin = 0;  // position where the token's own text begins
    PositionLogprobs logprobs;
  };

  bool hides_stop(TokenId token) const;
  void take_token(const SequenceEvent& event, size_t i, bool is_hidden, RequestOutput& out);
  void take_pieces(RequestOutput& out);
  void take_piece(TextPiece piece, RequestOutput& out);
  bool show(TextPiece piece);
  void cut_at_stop(const TextPiece& piece, const StopMatcher::Match& match);
  void account(RequestOutput& out);
  void end_by_core(const SequenceEvent& event, RequestOutput& out);
  void release(RequestOutput& out, bool is_end);
  PositionLogprobs with_bytes(const SampledLogprobs& logprobs) const;
  void add_prompt_logprobs(const SequenceEvent& event, RequestOutput& out) const;

  SequenceOutputParams params_;
  TokenText text_;
  StopMatcher matcher_;
  std::vector<TextPiece> pieces_;
  std::deque<Shown> shown_;
  size_t decided_ = 0;      // position up to which the parts are known
  size_t delivered_ = 0;    // position up to which text was delivered
  bool is_inside_ = false;  // position `decided_` is within reasoning
  std::deque<PendingLogprobs> logprobs_;
  std::deque<Token> tokens_;  // not accounted for
  int32_t n_tokens_ = 0;      // taken
  int32_t n_accounted_ = 0;
  int32_t n_reasoning_ = 0;  // of these
  bool finished_ = false;
  std::optional<int32_t> stopped_at_;
  StopCause stop_cause_;
};

}  // namespace omnibus
