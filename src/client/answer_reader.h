// AnswerReader: the answer of one request, as it comes, into its record.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/base/common/clock.h"
#include "omnibus/client/answer_event.h"
#include "omnibus/client/load_generator.h"
#include "omnibus/client/sse_parser.h"

namespace omnibus::client {

// A stream of more events than that is no answer: models end theirs long before, and each event with text
// costs memory.
constexpr int64_t kMostEvents = 1 << 20;

class AnswerReader {
 public:
  // `start` is the time of the run's start: what arrives is noted relative to it. `outputs` counts for all.
  AnswerReader(RequestRecord* record, bool stream, MonotonicNs start, int64_t* outputs);

  void on_head(int status, std::string_view content_type);
  void on_body(std::string_view bytes, MonotonicNs arrived);
  // What came is too long for an answer: the rest is not worth reading.
  bool too_long() const { return too_long_; }
  // The answer is whole: what is still missing is a failure.
  void finish(MonotonicNs now);

 private:
  void on_event(std::string_view data);
  void note(const AnswerEvent& event);
  void fail(FailureKind kind, std::string error);
  void finish_refusal();

  RequestRecord& record_;
  const bool stream_;
  const MonotonicNs start_;
  int64_t& outputs_;
  SseParser sse_;
  std::string body_;  // what is no stream
  MonotonicNs arrived_ = 0;
  int64_t events_ = 0;
  bool done_marker_ = false;
  bool too_long_ = false;
};

}  // namespace omnibus::client
