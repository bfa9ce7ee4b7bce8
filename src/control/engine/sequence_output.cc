#include "sequence_output.h"

#include <algorithm>
#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus {

SequenceOutput::SequenceOutput(SequenceOutputParams params)
    : params_(std::move(params)),
      text_(params_.tokenizer, params_.sampling.skip_special_tokens, params_.reasoning),
      matcher_(params_.stops),
      is_inside_(params_.reasoning.format && params_.reasoning.start == ReasoningStart::kInside) {}

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
    take_token(event, i, is_hidden, out);
  }
  if (!stopped_at_ && event.finish_reason) end_by_core(event, out);
  if (stopped_at_) {
    finished_ = true;
    out.finish_reason = FinishReason::kStop;
    out.stop_cause = stop_cause_;
    out.timeline.finished_ns = event.time_ns;
  }
  release(out, finished_);
  out.usage.prompt_tokens = params_.prompt_tokens;
  out.usage.completion_tokens = n_accounted_;
  out.usage.cached_tokens = event.timeline.cached_tokens;
  out.usage.reasoning_tokens = n_reasoning_;
  return out;
}

// The token that ends a sequence by its id is no part of the text, unless the client asks for it and it has
// text to show.
bool SequenceOutput::hides_stop(TokenId token) const {
  if (!params_.sampling.include_stop_str_in_output) return true;
  return params_.sampling.skip_special_tokens && params_.tokenizer->is_special(token);
}

void SequenceOutput::take_token(const SequenceEvent& event, size_t i, bool is_hidden, RequestOutput& out) {
  ++n_tokens_;
  tokens_.push_back({event.tokens[i], text_.end(), text_.end(), false});
  if (!is_hidden) {
    if (params_.sampling.logprobs && i < event.logprobs.size())
      logprobs_.push_back({text_.end(), with_bytes(event.logprobs[i])});
    text_.push(event.tokens[i], n_tokens_, pieces_);
    tokens_.back().end = text_.end();
  }
  take_pieces(out);
}

void SequenceOutput::take_pieces(RequestOutput& out) {
  for (TextPiece& piece : pieces_) {
    if (!stopped_at_) take_piece(std::move(piece), out);
  }
  pieces_.clear();
  account(out);
}

void SequenceOutput::take_piece(TextPiece piece, RequestOutput& out) {
  const TextPart part = piece.part;
  const bool is_marker = part == TextPart::kOpening || part == TextPart::kClosing;
  // No stop string reaches over a border of the reasoning.
  if (is_marker) matcher_.reset();
  const bool is_reasoning =
      is_marker || part == TextPart::kReasoning || (part == TextPart::kDropped && is_inside_);
  // The end of an unfinished character comes when its token has been accounted for.
  if (is_reasoning && piece.token > n_accounted_)
    tokens_[static_cast<size_t>(piece.token - n_accounted_ - 1)].is_reasoning = true;
  const size_t end = piece.begin + piece.size;
  if (!piece.text.empty() && show(std::move(piece))) return;
  decided_ = end;
  if (part != TextPart::kDropped) is_inside_ = part == TextPart::kOpening || part == TextPart::kReasoning;
  account(out);
}

// True when a stop string ended the sequence in it.
bool SequenceOutput::show(TextPiece piece) {
  const bool is_reasoning = piece.part == TextPart::kReasoning;
  if (!is_reasoning || params_.sampling.stop_in_reasoning) {
    const auto match = matcher_.feed(piece.text, piece.token > params_.sampling.min_tokens);
    if (match) {
      cut_at_stop(piece, *match);
      return true;
    }
  }
  shown_.push_back({is_reasoning, piece.begin, std::move(piece.text)});
  return false;
}

void SequenceOutput::cut_at_stop(const TextPiece& piece, const StopMatcher::Match& match) {
  const std::string& stop = matcher_.stop(match.index);
  stopped_at_ = piece.token;
  stop_cause_ = stop;
  decided_ = piece.begin + match.end;
  shown_.push_back({piece.part == TextPart::kReasoning, piece.begin, piece.text.substr(0, match.end)});
  if (params_.sampling.include_stop_str_in_output) return;
  // A stop string that began in an earlier piece was held back since, so the cut is never in what was shown.
  for (size_t left = stop.size(); left > 0;) {
    OMNIBUS_CHECK(!shown_.empty(), "text of a stop string was delivered");
    Shown& last = shown_.back();
    const size_t n = std::min(left, last.text.size());
    last.text.resize(last.text.size() - n);
    decided_ = last.begin + last.text.size();
    left -= n;
    if (last.text.empty()) shown_.pop_back();
  }
}

// Tokens whose text is decided; behind a stop string, those up to it.
void SequenceOutput::account(RequestOutput& out) {
  while (!tokens_.empty()) {
    const Token& token = tokens_.front();
    if (stopped_at_ ? n_accounted_ == *stopped_at_ : token.end > decided_) return;
    ++n_accounted_;
    const bool has_text = token.end > token.begin;
    if (has_text ? token.is_reasoning : is_inside_) ++n_reasoning_;
    out.token_ids.push_back(token.id);
    tokens_.pop_front();
  }
}

void SequenceOutput::end_by_core(const SequenceEvent& event, RequestOutput& out) {
  const bool is_whole =
      event.finish_reason == FinishReason::kStop || event.finish_reason == FinishReason::kLength;
  if (is_whole) {
    text_.finish(n_tokens_, pieces_);
    take_pieces(out);
    if (stopped_at_) return;
  }
  decided_ = text_.end();  // of an answer that was cut short what is undecided is left out
  account(out);
  finished_ = true;
  out.finish_reason = event.finish_reason;
  out.stop_cause = event.stop_cause;
  out.status = event.status;
}

// Text goes out except for what may become a stop string; logprobs go with the text of their token.
void SequenceOutput::release(RequestOutput& out, bool is_end) {
  size_t held = is_end ? 0 : matcher_.held();
  auto end = shown_.end();
  delivered_ = decided_;
  while (held > 0) {
    --end;
    const size_t n = std::min(held, end->text.size());
    delivered_ = end->begin + end->text.size() - n;
    held -= n;
  }
  for (auto it = shown_.begin(); it != shown_.end() && it->begin < delivered_; ++it) {
    const size_t n = std::min(it->text.size(), delivered_ - it->begin);
    (it->is_reasoning ? out.reasoning : out.text).append(it->text, 0, n);
    it->text.erase(0, n);
    it->begin += n;
  }
  while (!shown_.empty() && shown_.front().text.empty()) shown_.pop_front();
  while (!logprobs_.empty() && (logprobs_.front().begin < delivered_ || (is_end && !stopped_at_))) {
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
