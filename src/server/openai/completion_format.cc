#include "completion_format.h"

#include <utility>

#include "omnibus/base/common/clock.h"
#include "omnibus/server/http/sse.h"

#include "api/logprob_json.h"
#include "api/stop_json.h"
#include "openai_format.h"

namespace omnibus {
namespace {

class CompletionFormat final : public OpenAiFormat {
 public:
  explicit CompletionFormat(CompletionFormatOptions options)
      : options_(std::move(options)), id_(random_id("cmpl-")), created_(wall_clock_seconds()) {
    const size_t choices = options_.prompts.size() * static_cast<size_t>(options_.choices_per_prompt);
    states_.assign(choices, State(options_.tokens_as_token_ids));
  }

  std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) override;

 protected:
  std::string usage_event(const UsageTotals& usage) override;
  Json whole_body(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) override;

 private:
  struct State {
    explicit State(bool as_ids) : logprobs(as_ids) {}
    bool opened = false;
    LegacyLogprobs logprobs;
  };

  Json head() const;
  const TextPrompt& prompt_of(size_t choice) const {
    return options_.prompts[choice / static_cast<size_t>(options_.choices_per_prompt)];
  }
  void add_logprobs(State& state, const TextPrompt& prompt, const RequestOutput& output) const;
  Json choice_json(size_t index, const RequestOutput& output);

  const CompletionFormatOptions options_;
  const std::string id_;
  const int64_t created_;
  std::vector<State> states_;
};

Json CompletionFormat::head() const {
  Json out;
  out["id"] = id_;
  out["object"] = "text_completion";
  out["created"] = created_;
  out["model"] = options_.model;
  out["system_fingerprint"] = options_.fingerprint;
  return out;
}

void CompletionFormat::add_logprobs(State& state, const TextPrompt& prompt,
                                    const RequestOutput& output) const {
  const size_t echoed = options_.echo ? output.prompt_logprobs.size() : 0;
  const auto top = static_cast<size_t>(*options_.logprobs);
  for (size_t i = 0; i < echoed; ++i) {
    PositionLogprobs position = output.prompt_logprobs[i];
    if (position.top.size() > top) position.top.resize(top);  // prompt_logprobs asked for more
    if (i == 0) {
      // Nothing stands before the first token: it has a text and no probability.
      position.sampled.id = prompt.ids[0];
      position.token_bytes = prompt.first_bytes;
    }
    if (i < prompt.added_prefix) {
      state.logprobs.add_outside_text(position);
    } else {
      state.logprobs.add(position, i > 0);
    }
  }
  for (const PositionLogprobs& position : output.logprobs) state.logprobs.add(position, true);
}

Json CompletionFormat::choice_json(size_t index, const RequestOutput& output) {
  State& state = states_[index];
  const TextPrompt& prompt = prompt_of(index);
  const bool first = !std::exchange(state.opened, true);
  Json choice;
  choice["index"] = index;
  choice["text"] = first && options_.echo ? prompt.text + output.text : output.text;
  choice["logprobs"] = nullptr;
  if (options_.logprobs) {
    add_logprobs(state, prompt, output);
    choice["logprobs"] = state.logprobs.take();
  }
  choice["finish_reason"] = output.finish_reason ? Json(to_string(*output.finish_reason)) : Json(nullptr);
  choice["stop_reason"] = stop_reason_json(output.stop_cause);
  if (options_.prompt_logprobs) {
    choice["prompt_logprobs"] = prompt_logprobs_json(output.prompt_logprobs, *options_.prompt_logprobs);
  }
  if (options_.return_token_ids) {
    choice["token_ids"] = output.token_ids;
    if (first) choice["prompt_token_ids"] = prompt.ids;
  }
  return choice;
}

std::string CompletionFormat::stream_update(int32_t index, const RequestOutput& output,
                                            const UsageTotals& usage) {
  const bool echo = options_.echo && !states_[static_cast<size_t>(index)].opened;
  if (output.text.empty() && output.logprobs.empty() && !output.finish_reason && !echo &&
      !(options_.return_token_ids && !output.token_ids.empty())) {
    return {};
  }
  Json out = head();
  out["choices"] = Json::array();
  out["choices"].push_back(choice_json(static_cast<size_t>(index), output));
  if (options_.continuous_usage) {
    out["usage"] = usage_json(usage);
  } else if (options_.include_usage) {
    out["usage"] = nullptr;
  }
  return sse_event(dump_json(out));
}

std::string CompletionFormat::usage_event(const UsageTotals& usage) {
  if (!options_.include_usage && !options_.include_timings) return {};
  Json out = head();
  out["choices"] = Json::array();
  out["usage"] = options_.include_timings ? usage_with_timings_json(usage) : usage_json(usage);
  return sse_event(dump_json(out));
}

Json CompletionFormat::whole_body(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) {
  Json out = head();
  Json& list = out["choices"] = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) list.push_back(choice_json(i, choices[i]));
  out["usage"] = options_.include_timings ? usage_with_timings_json(usage) : usage_json(usage);
  return out;
}

}  // namespace

std::unique_ptr<AnswerFormat> make_completion_format(CompletionFormatOptions options) {
  return std::make_unique<CompletionFormat>(std::move(options));
}

}  // namespace omnibus
