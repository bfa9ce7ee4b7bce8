// PromptMaker: texts that are exactly so many tokens to the server that will read them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/base/config/bench_options.h"
#include "omnibus/client/http_client.h"
#include "omnibus/client/load_plan.h"

namespace omnibus::client {

// Asks the server's /tokenize, in vLLM's form or in llama.cpp's; omnibus has both. One thread at a time.
class TokenCounter {
 public:
  // `special`: with the tokens that the server puts around a prompt of its own accord.
  TokenCounter(HttpClient* http, std::string model, bool special);

  // nullopt: the server has no such route. Errors: the server is gone.
  StatusOr<std::optional<int64_t>> count(std::string_view text);

 private:
  enum class Form { kUnknown, kVllm, kLlamaCpp, kNone };
  StatusOr<std::optional<int64_t>> ask(std::string_view text, Form form);

  HttpClient* http_;
  const std::string model_;
  const bool special_;
  Form form_ = Form::kUnknown;
};

struct Prompts {
  std::vector<std::string> texts;  // one for each planned request
  int64_t exact = 0;               // how many are known to have the planned number of tokens
  bool counted = false;            // the server has told how many tokens they are
};

// Words drawn from the seed: two prompts share no beginning but their prefix. Counts are those of the text:
// with the special tokens of a prompt for completions, without those of the template for chat. A text that
// cannot be made exact (its tokenizer joins what stands together) stays as near as four corrections bring it.
// CANCELLED soon after `stop` is set: a prompt takes a call or more of the server.
StatusOr<Prompts> make_prompts(const BenchServeConfig& config, const std::vector<PlannedRequest>& plan,
                               TokenCounter& counter, const std::atomic<bool>& stop);

}  // namespace omnibus::client
