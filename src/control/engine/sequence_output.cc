#include "sequence_output.h"

#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus {

SequenceOutput::SequenceOutput(SequenceOutputParams params)
    : params_(std::move(params)),
      detokenizer_(params_.tokenizer, params_.sampling.skip_special_tokens, /*continues=*/true),
      matcher_(params_.stops) {}

RequestOutput SequenceOutput::take(const SequenceEvent& event) {
  OMNIBUS_CHECK(!finished_, "a finished sequence takes no more events");
  // An end without tokens may follow a step whose events were lost when the engine failed.
  OMNIBUS_CHECK(event.tokens.empty() || event.first_index == n_tokens_,
                "output tokens come in order, each once");
  RequestOutput out;
  out.id = params_.parent_id;
  out.index = params_.index;
  out.timeline = event.timeline;
  if (event.first_index == 0 && !event.tokens.empty()) add_prompt_logprobs(event, out);
  for (size_t i = 0; i < event.tokens.size() && !stopped_at_; ++i) {
    const bool is_hidden = event.finish_reason == FinishReason::kStop && i + 1 == event.tokens.size() &&
                           hides_stop(event.tokens[i]);
    ++n_tokens_;
    out.token_ids.push_back(event.tokens[i]);
    take_token(event, i, is_hidden);
  }
  if (!stopped_at_ && event.finish_reason) end_by_core(event, out);
  if (stopped_at_) {
    finished_ = true;
    out.finish_reason = FinishReason::kStop;
    out.stop_cause = stop_cause_;
    out.timeline.finished_ns = event.time_ns;
  }
  release(out, finished_);
  out.usage = {params_.prompt_tokens, n_tokens_, 0};
  return out;
}

// The token that ends a sequence by its id is no part of the text, unless the client asks for it and it has
// text to show.
bool SequenceOutput::hides_stop(TokenId token) const {
  if (!params_.sampling.include_stop_str_in_output) return true;
  return params_.sampling.skip_special_tokens && params_.tokenizer->is_special(token);
}

void SequenceOutput::take_token(const SequenceEvent& event, size_t i, bool is_hidden) {
  if (is_hidden) return;
  if (params_.sampling.logprobs && i < event.logprobs.size())
    logprobs_.push_back({known_, with_bytes(event.logprobs[i])});
  take_text(detokenizer_.push(event.tokens[i]));
}

void SequenceOutput::take_text(const std::string& text) {
  const size_t before = known_;
  held_ += text;
  known_ += text.size();
  const auto match = matcher_.feed(text, n_tokens_ > params_.sampling.min_tokens);
  if (!match) return;
  const std::string& stop = matcher_.stop(match->index);
  stopped_at_ = n_tokens_;
  stop_cause_ = stop;
  // A stop string that began in an earlier piece was held back since, so the cut is never in what was shown.
  const size_t end = before + match->end;
  known_ = params_.sampling.include_stop_str_in_output ? end : end - stop.size();
  OMNIBUS_CHECK(known_ >= delivered_, "text of a stop string was delivered");
  held_.resize(known_ - delivered_);
}

void SequenceOutput::end_by_core(const SequenceEvent& event, RequestOutput& out) {
  const bool has_text =
      event.finish_reason == FinishReason::kStop || event.finish_reason == FinishReason::kLength;
  if (has_text) {
    take_text(detokenizer_.flush());
    if (stopped_at_) return;
  }
  finished_ = true;
  out.finish_reason = event.finish_reason;
  out.stop_cause = event.stop_cause;
  out.status = event.status;
}

// Text goes out except for what may become a stop string; logprobs go with the text of their token.
void SequenceOutput::release(RequestOutput& out, bool is_end) {
  const size_t hold = is_end ? 0 : matcher_.held();
  const size_t n = held_.size() - hold;
  out.text = held_.substr(0, n);
  held_.erase(0, n);
  delivered_ += n;
  while (!logprobs_.empty() && (logprobs_.front().start < delivered_ || (is_end && !stopped_at_))) {
    out.logprobs.push_back(std::move(logprobs_.front().logprobs));
    logprobs_.pop_front();
  }
}

PositionLogprobs SequenceOutput::with_bytes(const SampledLogprobs& logprobs) const {
  PositionLogprobs out;
  out.sampled = logprobs.sampled;
  out.rank = logprobs.rank;
  out.token_bytes = params_.tokenizer->token_bytes(logprobs.sampled.id);
  for (const TokenLogprob& top : logprobs.top) {
    out.top.push_back(top);
    out.top_bytes.emplace_back(params_.tokenizer->token_bytes(top.id));
  }
  return out;
}

void SequenceOutput::add_prompt_logprobs(const SequenceEvent& event, RequestOutput& out) const {
  if (!params_.sampling.prompt_logprobs) return;
  out.prompt_logprobs.emplace_back();  // nothing comes before the first token, so it has no logprob
  for (const SampledLogprobs& logprobs : event.prompt_logprobs)
    out.prompt_logprobs.push_back(with_bytes(logprobs));
}

}  // namespace omnibus
