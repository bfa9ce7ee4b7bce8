// ChatSession: a conversation with an engine in this process: history in, streamed answer out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/text/template/chat_template.h"
#include "omnibus/text/template/dialect.h"

namespace omnibus {

struct ChatTurn {
  std::string role, content;
};

// One thread, except stop().
class ChatSession {
 public:
  // `dialect` may be null: answers are not split.
  ChatSession(AsyncEngine* engine, std::shared_ptr<const ChatTemplate> chat_template,
              std::shared_ptr<const Dialect> dialect)
      : engine_(engine), template_(std::move(chat_template)), dialect_(std::move(dialect)) {}

  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }
  void clear() { history_.clear(); }
  SamplingParams& sampling() { return sampling_; }
  // Seeds each answer; absent: random.
  void set_seed(std::optional<uint64_t> seed) { seed_ = seed; }

  struct Answer {
    bool stopped = false;      // by stop(); the text so far stays in the history
    bool cut = false;          // at the token limit
    size_t turns_dropped = 0;  // oldest turns that no longer fitted into the context
    RequestUsage usage;
    double seconds = 0;
  };
  // What the model thinks, or says.
  using TextCallback = std::function<void(std::string_view text, bool is_reasoning)>;
  // Waits for the whole answer; `on_text` gets it piece by piece, on this thread. An error leaves the history
  // as it was. Reasoning is not kept.
  StatusOr<Answer> ask(std::string question, const TextCallback& on_text);
  // Any thread, signal handlers too.
  void stop() { stop_ = true; }

 private:
  // Without sampling.
  StatusOr<GenerateRequest> make_request() const;
  StatusOr<Answer> generate(GenerateRequest request, const TextCallback& on_text, std::string& text);

  AsyncEngine* const engine_;
  const std::shared_ptr<const ChatTemplate> template_;
  const std::shared_ptr<const Dialect> dialect_;
  SamplingParams sampling_;
  std::optional<uint64_t> seed_;
  std::string system_;
  std::vector<ChatTurn> history_;
  std::atomic<bool> stop_{false};
};

}  // namespace omnibus
