#include "chat_session.h"

#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "omnibus/base/common/rng.h"

#include "answer_mailbox.h"

namespace omnibus {
namespace {

using Json = nlohmann::ordered_json;
constexpr auto kStopPoll = std::chrono::milliseconds(20);

bool is_too_long(const Status& error) { return error_detail(error).code == "context_length_exceeded"; }

}  // namespace

StatusOr<GenerateRequest> ChatSession::make_request() const {
  Json variables;
  Json& messages = variables["messages"] = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const ChatTurn& turn : history_) messages.push_back({{"role", turn.role}, {"content", turn.content}});
  const Tokenizer& tokenizer = engine_->tokenizer();
  OMNIBUS_ASSIGN_OR_RETURN(const RenderedPrompt prompt,
                           template_->render(variables, render_options_for(tokenizer)));
  GenerateRequest request;
  request.prompt_token_ids = tokenizer.encode(prompt.segments(), {});
  if (dialect_) request.reasoning = {dialect_->reasoning, reasoning_start(*dialect_->reasoning, prompt)};
  return request;
}

StatusOr<ChatSession::Answer> ChatSession::ask(std::string question, const TextCallback& on_text) {
  const std::vector<ChatTurn> before = history_;
  history_.push_back({"user", std::move(question)});
  size_t dropped = 0;
  for (;;) {
    auto request = make_request();
    if (!request.ok()) {
      history_ = before;
      return request.status();
    }
    std::string text;
    auto answer = generate(*std::move(request), on_text, text);
    if (answer.ok()) {
      answer->turns_dropped = dropped;
      history_.push_back({"assistant", std::move(text)});
      return answer;
    }
    // The oldest exchange makes room; the caller says so to the user.
    if (!is_too_long(answer.status()) || history_.size() < 3) {
      history_ = before;
      return answer.status();
    }
    history_.erase(history_.begin(), history_.begin() + 2);
    dropped += 2;
  }
}

StatusOr<ChatSession::Answer> ChatSession::generate(GenerateRequest request, const TextCallback& on_text,
                                                    std::string& text) {
  // Shared with the sink, which may outlive this call by one update.
  auto outputs = std::make_shared<AnswerMailbox>();
  request.sampling = sampling_;
  request.sampling.seed = seed_.value_or(random_seed());
  const auto started = std::chrono::steady_clock::now();
  stop_ = false;
  OMNIBUS_ASSIGN_OR_RETURN(const RequestId id,
                           engine_->submit(std::move(request), [outputs](RequestOutput output) {
                             outputs->put(std::move(output));
                           }));
  Answer answer;
  for (bool cancelled = false;;) {
    if (stop_ && !std::exchange(cancelled, true)) engine_->cancel(id);
    auto output = outputs->take_for(kStopPoll);
    if (!output) continue;
    text += output->text;
    if (!output->reasoning.empty() && !cancelled) on_text(output->reasoning, true);
    if (!output->text.empty() && !cancelled) on_text(output->text, false);
    answer.usage = output->usage;
    if (!output->finish_reason) continue;
    if (*output->finish_reason == FinishReason::kError || (!output->status.ok() && !cancelled))
      return output->status;
    answer.stopped = cancelled;
    answer.cut = *output->finish_reason == FinishReason::kLength;
    break;
  }
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

}  // namespace omnibus
