// SequenceOutput: from the token ids of one sequence to what its client sees: text in whole characters, stop
// strings, logprobs, usage. A state machine without threads or I/O. Its joined output does not depend on how
// the ids are cut into events.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/control/scheduler/scheduler.h"
#include "omnibus/text/tokenizer/incremental_detokenizer.h"
#include "omnibus/text/tokenizer/tokenizer.h"

#include "stop_matcher.h"

namespace omnibus {

struct SequenceOutputParams {
  RequestId parent_id = 0;
  int32_t index = 0;
  int32_t prompt_tokens = 0;
  SamplingParams sampling;
  std::shared_ptr<const StopAutomaton> stops;
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
  bool hides_stop(TokenId token) const;
  void take_token(const SequenceEvent& event, size_t i, bool is_hidden);
  void take_text(const std::string& text);
  void end_by_core(const SequenceEvent& event, RequestOutput& out);
  void release(RequestOutput& out, bool is_end);
  PositionLogprobs with_bytes(const SampledLogprobs& logprobs) const;
  void add_prompt_logprobs(const SequenceEvent& event, RequestOutput& out) const;

  struct PendingLogprobs {
    size_t start = 0;  // offset in the text where the token's own text begins
    PositionLogprobs logprobs;
  };

  SequenceOutputParams params_;
  IncrementalDetokenizer detokenizer_;
  StopMatcher matcher_;
  std::string held_;      // text that is known but not delivered
  size_t known_ = 0;      // bytes of text known so far
  size_t delivered_ = 0;  // of these, bytes delivered
  std::deque<PendingLogprobs> logprobs_;
  int32_t n_tokens_ = 0;
  bool finished_ = false;
  std::optional<int32_t> stopped_at_;
  StopCause stop_cause_;
};

}  // namespace omnibus
