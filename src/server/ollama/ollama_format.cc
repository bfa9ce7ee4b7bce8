#include "ollama_format.h"

#include <algorithm>
#include <utility>

#include "omnibus/base/common/wall_clock.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/server/ollama/ollama_api.h"

#include "api/logprob_json.h"
#include "timestamp.h"

namespace omnibus {
namespace {

// The head of every object of an answer.
Json head(const std::string& model) {
  Json out;
  out["model"] = model;
  out["created_at"] = rfc3339(wall_clock_ns());
  return out;
}

void add_text(Json& out, bool chat, const std::string& text, const std::string& thinking) {
  if (!chat) {
    out["response"] = text;
    if (!thinking.empty()) out["thinking"] = thinking;
    return;
  }
  Json message;
  message["role"] = "assistant";
  message["content"] = text;
  if (!thinking.empty()) message["thinking"] = thinking;
  out["message"] = std::move(message);
}

// Clients divide by durations: none is 0.
void add_timings(Json& out, const RequestTimeline& t, const RequestUsage& usage) {
  const auto span = [](int64_t from, int64_t to) { return std::max<int64_t>(1, to - from); };
  out["total_duration"] = span(t.arrival_ns, t.finished_ns);
  out["load_duration"] = span(t.arrival_ns, t.first_scheduled_ns);
  out["prompt_eval_count"] = usage.prompt_tokens;
  out["prompt_eval_duration"] = span(t.first_scheduled_ns, t.first_token_ns);
  out["eval_count"] = usage.completion_tokens;
  out["eval_duration"] = span(t.first_token_ns, t.finished_ns);
}

class OllamaFormat final : public AnswerFormat {
 public:
  explicit OllamaFormat(OllamaFormatOptions options) : options_(std::move(options)) {}

  HttpResponse stream_head() override;
  std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) override;
  std::string stream_end(const UsageTotals& usage) override;
  std::string stream_error(const Status& error) override;
  HttpResponse whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) override;
  HttpResponse error(const Status& error) override { return render_ollama_error(error, {}); }

 private:
  void add_logprobs(Json& out, const RequestOutput& output) const;
  void add_end(Json& out, const RequestOutput& last);

  const OllamaFormatOptions options_;
  std::vector<TokenId> answer_ids_;
};

HttpResponse OllamaFormat::stream_head() {
  HttpResponse response;
  response.content_type = "application/x-ndjson";
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return response;
}

void OllamaFormat::add_logprobs(Json& out, const RequestOutput& output) const {
  if (options_.logprobs && !output.logprobs.empty()) out["logprobs"] = chat_logprobs(output.logprobs, false);
}

void OllamaFormat::add_end(Json& out, const RequestOutput& last) {
  out["done"] = true;
  out["done_reason"] = to_string(last.finish_reason.value_or(FinishReason::kStop));
  if (options_.context) {
    Json& ids = out["context"] = options_.prompt_ids;
    for (const TokenId id : answer_ids_) ids.push_back(id);
  }
  add_timings(out, last.timeline, last.usage);
}

std::string OllamaFormat::stream_update(int32_t /*index*/, const RequestOutput& output,
                                        const UsageTotals& /*usage*/) {
  std::string lines;
  if (options_.context) {
    answer_ids_.insert(answer_ids_.end(), output.token_ids.begin(), output.token_ids.end());
  }
  if (!output.text.empty() || !output.reasoning.empty() || (options_.logprobs && !output.logprobs.empty())) {
    Json out = head(options_.model);
    add_text(out, options_.chat, output.text, output.reasoning);
    out["done"] = false;
    add_logprobs(out, output);
    lines += dump_json(out) + "\n";
  }
  if (output.finish_reason) {
    Json out = head(options_.model);
    add_text(out, options_.chat, "", "");
    add_end(out, output);
    lines += dump_json(out) + "\n";
  }
  return lines;
}

std::string OllamaFormat::stream_end(const UsageTotals& /*usage*/) { return {}; }

std::string OllamaFormat::stream_error(const Status& error) {
  Json out;
  out["error"] = status_message(error);
  return dump_json(out) + "\n";
}

HttpResponse OllamaFormat::whole(const std::vector<ChoiceResult>& choices, const UsageTotals& /*usage*/) {
  const ChoiceResult& result = choices.front();
  answer_ids_ = result.token_ids;
  Json out = head(options_.model);
  add_text(out, options_.chat, result.text, result.reasoning);
  add_end(out, result);
  add_logprobs(out, result);
  HttpResponse response;
  response.body = dump_json(out);
  return response;
}

}  // namespace

std::unique_ptr<AnswerFormat> make_ollama_format(OllamaFormatOptions options) {
  return std::make_unique<OllamaFormat>(std::move(options));
}

HttpResponse ollama_empty_answer(const std::string& model, bool chat, const char* done_reason) {
  Json out = head(model);
  add_text(out, chat, "", "");
  out["done"] = true;
  out["done_reason"] = done_reason;
  HttpResponse response;
  response.body = dump_json(out);
  return response;
}

}  // namespace omnibus
