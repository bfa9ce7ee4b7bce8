#include "answer_reader.h"

#include <fmt/format.h>

namespace omnibus::client {
namespace {

constexpr size_t kShownBytes = 300;
constexpr size_t kMostBody = 64 << 20;

std::string shown(std::string_view text) {
  return text.size() <= kShownBytes ? std::string(text) : std::string(text.substr(0, kShownBytes)) + "...";
}

}  // namespace

AnswerReader::AnswerReader(RequestRecord* record, bool stream, MonotonicNs start, int64_t* outputs)
    : record_(*record),
      stream_(stream),
      start_(start),
      outputs_(*outputs),
      sse_([this](std::string_view data) { on_event(data); }) {}

void AnswerReader::fail(FailureKind kind, std::string error) {
  if (!record_.ok()) return;  // the first says it
  record_.failure = kind;
  record_.error = std::move(error);
}

void AnswerReader::on_head(int status, std::string_view content_type) {
  record_.http_status = status;
  if (status != 200) {
    fail(FailureKind::kStatus, "");
  } else if (stream_ && !content_type.starts_with("text/event-stream")) {
    fail(FailureKind::kMalformed, fmt::format("no event stream but '{}'", content_type));
  }
}

void AnswerReader::on_body(std::string_view bytes, MonotonicNs arrived) {
  arrived_ = arrived - start_;
  if (stream_ && record_.http_status == 200) {
    sse_.push(bytes);
    if (sse_.too_long()) fail(FailureKind::kMalformed, "an event is longer than 1 MiB");
    too_long_ = sse_.too_long() || events_ > kMostEvents;
  } else if (body_.size() + bytes.size() <= kMostBody) {
    body_ += bytes;
  } else {
    too_long_ = true;
    fail(FailureKind::kMalformed, "the answer is longer than 64 MiB");
  }
}

void AnswerReader::on_event(std::string_view data) {
  if (++events_ > kMostEvents) {
    fail(FailureKind::kMalformed, fmt::format("the answer has more than {} events", kMostEvents));
  }
  if (!record_.ok()) return;
  if (data == "[DONE]") {
    done_marker_ = true;
    return;
  }
  const auto event = read_answer_event(data);
  if (!event) return fail(FailureKind::kMalformed, "an event is not a JSON object: " + shown(data));
  if (event->has_error) return fail(FailureKind::kError, shown(event->error.empty() ? data : event->error));
  if (event->has_output) {
    record_.outputs.push_back(arrived_);
    ++outputs_;
  }
  if (event->has_output || event->finished) record_.ended = arrived_;
  note(*event);
}

void AnswerReader::note(const AnswerEvent& event) {
  if (event.finished && record_.finish_reason.empty()) record_.finish_reason = event.finish_reason;
  if (event.completion_tokens) {
    record_.has_usage = true;
    record_.completion_tokens = *event.completion_tokens;
    record_.prompt_tokens = event.prompt_tokens.value_or(record_.prompt_tokens);
    record_.cached_tokens = event.cached_tokens.value_or(record_.cached_tokens);
  }
}

void AnswerReader::finish_refusal() {
  const auto event = read_answer_event(body_);
  record_.error = shown(event && !event->error.empty() ? event->error : body_);
}

void AnswerReader::finish(MonotonicNs now) {
  if (record_.failure == FailureKind::kStatus) return finish_refusal();
  if (!record_.ok()) return;
  if (stream_) {
    if (sse_.incomplete() || (record_.finish_reason.empty() && !done_marker_)) {
      fail(FailureKind::kMalformed, "the stream ends without a finish_reason and without [DONE]");
    } else if (record_.ended == 0) {
      fail(FailureKind::kMalformed, "the stream has no choices");
    }
    return;
  }
  const auto event = read_answer_event(body_);
  if (!event) return fail(FailureKind::kMalformed, "the answer is not a JSON object: " + shown(body_));
  if (event->has_error) return fail(FailureKind::kError, shown(event->error));
  if (!event->finished && !event->has_output)
    return fail(FailureKind::kMalformed, "the answer has no choices");
  note(*event);
  record_.ended = now - start_;
}

}  // namespace omnibus::client
