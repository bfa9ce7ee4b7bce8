// Generation: one request of a client on its way through the engine. Submits its prompts, gathers or streams
// their outputs, and makes sure that the client hears exactly one end, and that nothing runs on for a client
// who left.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/control/engine/async_engine.h"
#include "omnibus/server/http/reply.h"

#include "answer_format.h"

namespace omnibus {

struct GenerationOptions {
  bool stream = false;
  int32_t choices_per_prompt = 1;  // that the engine makes
  int32_t choices_kept = 0;        // of these, the best; 0: all. Not streamed
  // The tokens made are not wanted, only the prompt (max_tokens: 0): their text is dropped.
  bool prompt_only = false;
  std::string param;  // names the field in errors about the prompt: "messages" or "prompt"
  // Headers of the answer beside Content-Type.
  std::vector<std::pair<std::string, std::string>> headers;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Submits each prompt; if one is refused, all are. Thread-safe; never blocks. `engine` outlives the
  // engine's last call of a sink.
  static void start(AsyncEngine* engine, ReplyPtr reply, std::unique_ptr<AnswerFormat> format,
                    GenerationOptions options, std::vector<GenerateRequest> requests);

  Generation(AsyncEngine* engine, ReplyPtr reply, std::unique_ptr<AnswerFormat> format,
             GenerationOptions options, size_t prompts);

 private:
  void submit_all(std::vector<GenerateRequest> requests);
  void on_output(size_t prompt, RequestOutput output);
  bool deliver(int32_t choice, RequestOutput output);
  void stream(int32_t choice, RequestOutput output);
  void gather(int32_t choice, RequestOutput output);
  void add_usage(int32_t choice, const RequestUsage& usage);
  void fail(const Status& error);
  void close();
  void client_gone();
  void cancel_all();

  AsyncEngine* const engine_;
  const ReplyPtr reply_;
  const std::unique_ptr<AnswerFormat> format_;
  const GenerationOptions options_;

  std::mutex mutex_;
  std::vector<RequestId> ids_;          // of the prompts submitted so far
  std::vector<RequestOutput> choices_;  // gathered, or (streaming) held back while the outbox is full
  std::vector<bool> held_;
  std::vector<RequestUsage> usage_;  // per choice
  UsageTotals totals_;
  size_t open_;          // choices without an end
  bool begun_ = false;   // the head of the stream is out
  bool closed_ = false;  // the client has heard the end, or left
};

}  // namespace omnibus
