#include "chat_format.h"

#include <utility>

#include "omnibus/base/common/clock.h"
#include "omnibus/server/http/sse.h"

#include "api/logprob_json.h"
#include "api/stop_json.h"
#include "openai_format.h"

namespace omnibus {
namespace {

class ChatFormat final : public OpenAiFormat {
 public:
  explicit ChatFormat(ChatFormatOptions options)
      : options_(std::move(options)),
        id_(random_id("chatcmpl-")),
        created_(wall_clock_seconds()),
        opened_(static_cast<size_t>(options_.choices)) {}

  std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) override;

 protected:
  std::string usage_event(const UsageTotals& usage) override;
  Json whole_body(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) override;

 private:
  Json head(const char* object) const;
  std::string chunk(Json choice, const UsageTotals& usage);
  Json choice_json(int32_t index, Json delta) const;
  Json logprobs_json(const RequestOutput& output) const;
  void add_reasoning(Json& message, const std::string& reasoning) const;

  const ChatFormatOptions options_;
  const std::string id_;
  const int64_t created_;
  std::vector<bool> opened_;  // the role chunk is out
  bool prompt_ids_sent_ = false;
};

Json ChatFormat::head(const char* object) const {
  Json out;
  out["id"] = id_;
  out["object"] = object;
  out["created"] = created_;
  out["model"] = options_.model;
  out["system_fingerprint"] = options_.fingerprint;
  return out;
}

std::string ChatFormat::chunk(Json choice, const UsageTotals& usage) {
  Json out = head("chat.completion.chunk");
  out["choices"] = Json::array();
  out["choices"].push_back(std::move(choice));
  if (options_.continuous_usage) {
    out["usage"] = usage_json(usage);
  } else if (options_.include_usage) {
    out["usage"] = nullptr;
  }
  if (options_.return_token_ids && !prompt_ids_sent_) {
    out["prompt_token_ids"] = options_.prompt_token_ids;
    prompt_ids_sent_ = true;
  }
  return sse_event(dump_json(out));
}

Json ChatFormat::choice_json(int32_t index, Json delta) const {
  Json choice;
  choice["index"] = index;
  choice["delta"] = std::move(delta);
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  return choice;
}

Json ChatFormat::logprobs_json(const RequestOutput& output) const {
  if (!options_.logprobs) return nullptr;
  Json out;
  out["content"] = chat_logprobs(output.logprobs, options_.tokens_as_token_ids);
  out["refusal"] = nullptr;
  return out;
}

// Under each of its names; nothing where there is none.
void ChatFormat::add_reasoning(Json& message, const std::string& reasoning) const {
  if (reasoning.empty() || !options_.include_reasoning) return;
  const ReasoningField field = options_.reasoning_field;
  if (field != ReasoningField::kReasoning) message["reasoning_content"] = reasoning;
  if (field != ReasoningField::kReasoningContent) message["reasoning"] = reasoning;
}

std::string ChatFormat::stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) {
  std::string events;
  if (!opened_[static_cast<size_t>(index)]) {
    opened_[static_cast<size_t>(index)] = true;
    Json delta;
    delta["role"] = "assistant";
    delta["content"] = "";
    events += chunk(choice_json(index, std::move(delta)), usage);
    if (!options_.echo.empty()) events += chunk(choice_json(index, {{"content", options_.echo}}), usage);
  }
  Json reasoning = Json::object();
  add_reasoning(reasoning, output.reasoning);
  const bool ids = options_.return_token_ids && !output.token_ids.empty();
  // One kind of text a chunk; logprobs and ids of both come with the last.
  if (!reasoning.empty() && !output.text.empty())
    events += chunk(choice_json(index, std::exchange(reasoning, Json::object())), usage);
  if (!reasoning.empty() || !output.text.empty() || !output.logprobs.empty() || ids) {
    Json delta = std::move(reasoning);
    if (delta.empty()) delta["content"] = output.text;
    Json choice = choice_json(index, std::move(delta));
    if (!output.logprobs.empty()) choice["logprobs"] = logprobs_json(output);
    if (options_.return_token_ids) choice["token_ids"] = output.token_ids;
    events += chunk(std::move(choice), usage);
  }
  if (output.finish_reason) {
    Json choice = choice_json(index, Json::object());
    choice["finish_reason"] = to_string(*output.finish_reason);
    choice["stop_reason"] = stop_reason_json(output.stop_cause);
    events += chunk(std::move(choice), usage);
  }
  return events;
}

std::string ChatFormat::usage_event(const UsageTotals& usage) {
  if (!options_.include_usage && !options_.include_timings) return {};
  Json out = head("chat.completion.chunk");
  out["choices"] = Json::array();
  out["usage"] = options_.include_timings ? usage_with_timings_json(usage) : usage_json(usage);
  return sse_event(dump_json(out));
}

Json ChatFormat::whole_body(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) {
  Json out = head("chat.completion");
  Json& list = out["choices"] = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    Json choice;
    choice["index"] = i;
    choice["message"]["role"] = "assistant";
    choice["message"]["content"] = options_.echo + choices[i].text;
    choice["message"]["refusal"] = nullptr;
    add_reasoning(choice["message"], choices[i].reasoning);
    choice["logprobs"] = logprobs_json(choices[i]);
    choice["finish_reason"] = to_string(choices[i].finish_reason.value_or(FinishReason::kStop));
    choice["stop_reason"] = stop_reason_json(choices[i].stop_cause);
    if (options_.return_token_ids) choice["token_ids"] = choices[i].token_ids;
    list.push_back(std::move(choice));
  }
  out["usage"] = options_.include_timings ? usage_with_timings_json(usage) : usage_json(usage);
  if (options_.prompt_logprobs) {
    out["prompt_logprobs"] = prompt_logprobs_json(choices.front().prompt_logprobs, *options_.prompt_logprobs);
  }
  if (options_.return_token_ids) out["prompt_token_ids"] = options_.prompt_token_ids;
  return out;
}

}  // namespace

std::unique_ptr<AnswerFormat> make_chat_format(ChatFormatOptions options) {
  return std::make_unique<ChatFormat>(std::move(options));
}

}  // namespace omnibus
