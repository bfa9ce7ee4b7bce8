#include "native_format.h"

#include <utility>

#include "omnibus/server/http/sse.h"
#include "omnibus/server/llama_cpp/llama_cpp_api.h"

#include "api/logprob_json.h"
#include "llama_cpp_error.h"
#include "timings.h"

namespace omnibus {
namespace {

Json token_json(const TokenLogprob& token, const std::string& bytes) {
  Json out;
  out["id"] = token.id;
  out["token"] = logprob_token_text(token.id, bytes, /*as_id=*/false);
  Json& list = out["bytes"] = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  out["logprob"] = token.logprob;
  return out;
}

Json probabilities_json(const std::vector<PositionLogprobs>& positions) {
  Json out = Json::array();
  for (const PositionLogprobs& position : positions) {
    Json entry = token_json(position.sampled, position.token_bytes);
    Json top = Json::array();
    for (size_t i = 0; i < position.top.size(); ++i) {
      top.push_back(token_json(position.top[i], position.top_bytes[i]));
    }
    entry["top_logprobs"] = std::move(top);
    out.push_back(std::move(entry));
  }
  return out;
}

const char* stop_type(const RequestOutput& output) {
  if (!output.finish_reason) return "none";
  if (*output.finish_reason == FinishReason::kLength) return "limit";
  return std::holds_alternative<std::string>(output.stop_cause) ? "word" : "eos";
}

// {"a/b": ...} for each name of `fields` that the answer has.
Json picked(const std::vector<std::string>& fields, const Json& answer) {
  Json out = Json::object();
  for (const std::string& field : fields) {
    const Json* at = &answer;
    for (size_t begin = 0; at != nullptr && begin <= field.size();) {
      const size_t end = std::min(field.find('/', begin), field.size());
      const auto it = at->is_object() ? at->find(field.substr(begin, end - begin)) : at->end();
      at = at->is_object() && it != at->end() ? &*it : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) out[field] = *at;
  }
  return out;
}

class NativeFormat final : public AnswerFormat {
 public:
  explicit NativeFormat(NativeFormatOptions options)
      : options_(std::move(options)),
        new_line_(options_.prompts.size() * static_cast<size_t>(options_.choices_per_prompt)) {}

  HttpResponse stream_head() override { return sse_head(); }
  std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) override;
  std::string stream_end(const UsageTotals& /*usage*/) override { return {}; }
  std::string stream_error(const Status& error) override {
    return sse_event(dump_json(llama_cpp_error_json(error)));
  }
  HttpResponse whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) override;
  HttpResponse error(const Status& error) override { return render_llama_cpp_error(error, {}); }

 private:
  Json partial(int32_t index, const RequestOutput& output) const;
  // `content` and `tokens`: what no earlier chunk had.
  Json final(int32_t index, const RequestOutput& output, std::string content, Json tokens) const;

  const NativeFormatOptions options_;
  std::vector<bool> new_line_;  // per choice: its text has one
};

Json NativeFormat::partial(int32_t index, const RequestOutput& output) const {
  Json out;
  out["index"] = index;
  out["content"] = output.text;
  out["tokens"] = output.token_ids;
  out["stop"] = false;
  out["id_slot"] = -1;
  out["tokens_predicted"] = output.usage.completion_tokens;
  out["tokens_evaluated"] = output.usage.prompt_tokens;
  if (options_.timings_per_token) out["timings"] = timings_json(output.usage, output.timeline);
  if (options_.probabilities) out["completion_probabilities"] = probabilities_json(output.logprobs);
  return out;
}

Json NativeFormat::final(int32_t index, const RequestOutput& output, std::string content, Json tokens) const {
  const int64_t predicted = output.usage.completion_tokens;
  const auto prompt = static_cast<size_t>(index / options_.choices_per_prompt);
  const bool by_length = output.finish_reason == FinishReason::kLength;
  Json out;
  out["index"] = index;
  out["content"] = std::move(content);
  out["tokens"] = std::move(tokens);
  out["id_slot"] = -1;  // requests have no slots here
  out["stop"] = true;
  out["model"] = options_.model;
  out["tokens_predicted"] = predicted;
  out["tokens_evaluated"] = output.usage.prompt_tokens;
  Json& settings = out["generation_settings"] = options_.settings;
  if (options_.seed_per_prompt) settings["seed"] = settings["seed"].get<uint64_t>() + prompt;
  out["prompt"] = options_.prompts[prompt];
  out["has_new_line"] = static_cast<bool>(new_line_[static_cast<size_t>(index)]);
  // Ended by the context, not by what was asked for.
  out["truncated"] = by_length && (options_.n_predict < 0 || predicted < options_.n_predict);
  out["stop_type"] = stop_type(output);
  const auto* word = std::get_if<std::string>(&output.stop_cause);
  out["stopping_word"] = word == nullptr ? "" : *word;
  out["tokens_cached"] = output.usage.cached_tokens;
  out["timings"] = timings_json(output.usage, output.timeline);
  return out;
}

std::string NativeFormat::stream_update(int32_t index, const RequestOutput& output,
                                        const UsageTotals& /*usage*/) {
  std::string events;
  const auto choice = static_cast<size_t>(index);
  new_line_[choice] = new_line_[choice] || output.text.find('\n') != std::string::npos;
  if (!output.text.empty() || !output.token_ids.empty() || !output.logprobs.empty()) {
    events += sse_event(dump_json(partial(index, output)));
  }
  if (output.finish_reason) {
    const Json end = final(index, output, {}, Json::array());
    events +=
        sse_event(dump_json(options_.response_fields.empty() ? end : picked(options_.response_fields, end)));
  }
  return events;
}

HttpResponse NativeFormat::whole(const std::vector<ChoiceResult>& choices, const UsageTotals& /*usage*/) {
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const ChoiceResult& choice = choices[i];
    new_line_[i] = choice.text.find('\n') != std::string::npos;
    Json tokens = options_.return_tokens ? Json(choice.token_ids) : Json::array();
    Json answer = final(static_cast<int32_t>(i), choice, choice.text, std::move(tokens));
    if (options_.probabilities) answer["completion_probabilities"] = probabilities_json(choice.logprobs);
    list.push_back(options_.response_fields.empty() ? std::move(answer)
                                                    : picked(options_.response_fields, answer));
  }
  HttpResponse response;
  response.body = dump_json(list.size() == 1 ? list.front() : list);
  return response;
}

}  // namespace

std::unique_ptr<AnswerFormat> make_native_format(NativeFormatOptions options) {
  return std::make_unique<NativeFormat>(std::move(options));
}

}  // namespace omnibus
