// What the two streamed APIs of OpenAI have in common: server-sent events, the error object, usage.
#pragma once

#include "omnibus/server/http/json_body.h"

#include "api/answer_format.h"

namespace omnibus {

Json usage_json(const UsageTotals& usage);
// With `omnibus`: how long what took, in milliseconds. For an answer that has ended.
Json usage_with_timings_json(const UsageTotals& usage);

class OpenAiFormat : public AnswerFormat {
 public:
  OpenAiFormat();
  HttpResponse stream_head() final;
  std::string stream_end(const UsageTotals& usage) final;
  std::string stream_error(const Status& error) final;
  HttpResponse whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) final;
  HttpResponse error(const Status& error) final;

 protected:
  // The event with the usage when it was asked for, else "".
  virtual std::string usage_event(const UsageTotals& usage) = 0;
  virtual Json whole_body(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) = 0;

 private:
  // openai-processing-ms: since the format was made, which is when the request was understood.
  void add_processing_time(HttpResponse& head) const;

  const int64_t started_ns_;
};

}  // namespace omnibus
