// Clients: makes the requests of a run and judges what comes back, knowing only what was asked, what was
// answered and the model's closed form.
//   I3   each token once, in order, as the closed form says; text, logprobs and usage agree with the tokens
//   I5   each accepted choice ends exactly once, for a reason that happened
//   I9   nothing is refused or accepted against the limits, nothing accepted once a drain began
//   I10  deadlines hold
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/contract/request/request_output.h"
#include "omnibus/control/engine/async_engine.h"

#include "sim/scenario.h"
#include "sim/sim_rng.h"
#include "sim/token_model.h"
#include "sim/verdict.h"

namespace omnibus::sim {

// One choice of an accepted request.
struct Choice {
  Request request;  // as the core should see it
  RequestId parent = 0;
  int32_t index = 0;
  std::optional<int32_t> nan_at;
  ExpectedEnd expected;

  std::vector<TokenId> tokens;
  std::string text;
  size_t logprobs = 0;
  bool is_handled = false;  // the engine has taken it in
  bool is_ended = false;
  bool is_cancelled = false;
  int32_t cached = -1;  // tokens found in the prefix cache at first admission; -1: not admitted
};

class Clients {
 public:
  Clients(const Scenario& scenario, const Clock* clock, Verdict* verdict);

  struct Ask {
    GenerateRequest generate;
    std::optional<AdapterRef> adapter;
    std::optional<int32_t> nan_at;
  };
  Ask next_ask(SimRng& rng);

  // Why a request like this must be refused now; nullopt: it must be accepted.
  enum class Refusal { kInvalid, kQueueFull, kUnavailable };
  std::optional<Refusal> due_refusal(const GenerateRequest& request) const;
  void judge_answer(const Ask& ask, const StatusOr<RequestId>& answer, std::optional<Refusal> due);
  void take(const RequestOutput& output);

  void cancelled(RequestId parent);
  void drain_began() { is_draining_ = true; }
  void drain_ran_out() { drain_ran_out_ = true; }
  void engine_failed() { engine_failed_ = true; }

  std::map<RequestId, Choice>& choices() { return choices_; }
  const std::map<RequestId, Choice>& choices() const { return choices_; }
  bool is_open(RequestId id) const;
  const std::vector<RequestId>& open() const { return open_; }  // ascending
  std::vector<RequestId> open_parents() const;
  bool is_draining() const { return is_draining_; }
  int64_t accepted() const { return static_cast<int64_t>(choices_.size()); }
  int64_t refused() const { return refused_; }

 private:
  std::vector<TokenId> next_prompt(SimRng& rng) const;
  int64_t last_id() const { return static_cast<int64_t>(choices_.rbegin()->first); }
  void fail(const char* invariant, const Choice& choice, const std::string& what);
  void judge_tokens(Choice& choice, const RequestOutput& output);
  void judge_end(Choice& choice, const RequestOutput& output);
  void judge_prompt_logprobs(const Choice& choice, const RequestOutput& output);
  void judge_timeline(const Choice& choice, const RequestOutput& output);

  const Scenario& scenario_;
  const Clock* const clock_;
  Verdict* const verdict_;
  int64_t kv_tokens_ = 0;  // that the whole cache holds
  int64_t max_waiting_tokens_ = 0;
  std::vector<std::vector<TokenId>> prefixes_;  // that prompts share
  std::map<RequestId, Choice> choices_;
  std::vector<RequestId> open_;
  int64_t open_prompt_tokens_ = 0;
  bool is_draining_ = false;
  bool drain_ran_out_ = false;
  bool engine_failed_ = false;
  int64_t refused_ = 0;
};

}  // namespace omnibus::sim
