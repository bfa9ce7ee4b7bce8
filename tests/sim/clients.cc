#include "clients.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/rng.h"

namespace omnibus::sim {
namespace {

constexpr int32_t kPrefixes = 3;
constexpr int64_t kWaitingTokensPerKvToken = 4;  // the default of max_waiting_tokens
constexpr TokenId kOtherEnd = 256;               // "<|endoftext|>"

TokenId letter(SimRng& rng) { return kFirstLetter + static_cast<TokenId>(rng.between(0, kLetters - 1)); }

template <typename T>
bool is_prefix(const T& short_one, const T& long_one) {
  return short_one.size() <= long_one.size() &&
         std::equal(short_one.begin(), short_one.end(), long_one.begin());
}

int64_t tokens_in_cache(const KVCacheConfig& kv) {
  const bool one_pool = kv.groups.size() > 1 && kv.groups[0].bytes_per_block == kv.groups[1].bytes_per_block;
  return int64_t{kv.num_blocks} / (one_pool ? 2 : 1) * kv.groups[0].tokens_per_block;
}

}  // namespace

Clients::Clients(const Scenario& scenario, const Clock* clock, Verdict* verdict)
    : scenario_(scenario), clock_(clock), verdict_(verdict), kv_tokens_(tokens_in_cache(scenario.kv)) {
  max_waiting_tokens_ =
      scenario.max_waiting_tokens > 0 ? scenario.max_waiting_tokens : kWaitingTokensPerKvToken * kv_tokens_;
  SimRng rng = SimRng(splitmix64(scenario.seed, 1)).fork("prefixes");
  for (int32_t i = 0; i < kPrefixes; ++i) {
    auto& prefix = prefixes_.emplace_back();
    for (int32_t p = 0; p < scenario.load.max_prompt; ++p) prefix.push_back(letter(rng));
  }
}

std::vector<TokenId> Clients::next_prompt(SimRng& rng) const {
  const Load& load = scenario_.load;
  std::vector<TokenId> prompt;
  auto length = rng.between(rng.chance(0.01) ? 0 : 1, load.max_prompt);
  if (!choices_.empty() && rng.chance(load.next_turns)) {
    // A conversation goes on: the earlier prompt, its answer and something new.
    const auto earlier = choices_.lower_bound(static_cast<RequestId>(rng.between(1, last_id())));
    prompt = earlier->second.request.prompt_token_ids;
    prompt.insert(prompt.end(), earlier->second.tokens.begin(), earlier->second.tokens.end());
    length = static_cast<int64_t>(prompt.size()) + rng.between(1, 8);
  } else if (rng.chance(load.shared_prefix)) {
    const auto& prefix = prefixes_[static_cast<size_t>(rng.between(0, kPrefixes - 1))];
    prompt.assign(prefix.begin(), prefix.begin() + rng.between(length / 2, length));
  }
  while (static_cast<int64_t>(prompt.size()) < length) prompt.push_back(letter(rng));
  // Now and then longer than the context or the cache.
  if (rng.chance(0.02)) prompt.resize(static_cast<size_t>(scenario_.scheduler.max_model_len), 'a');
  return prompt;
}

Clients::Ask Clients::next_ask(SimRng& rng) {
  const Load& load = scenario_.load;
  Ask ask;
  GenerateRequest& g = ask.generate;
  g.prompt_token_ids = next_prompt(rng);
  SamplingParams& p = g.sampling;
  p.seed = rng.next();
  p.max_tokens = rng.chance(0.05) ? 0 : rng.between32(1, load.max_output);
  p.ignore_eos = rng.chance(0.1);
  if (rng.chance(0.1)) p.min_tokens = rng.between32(1, 4);
  if (rng.chance(load.stops)) {
    const auto size = rng.between(1, 3);
    std::string stop;
    for (int64_t i = 0; i < size; ++i) stop += static_cast<char>(letter(rng));
    p.stop.push_back(stop);
  }
  if (rng.chance(load.stops / 2)) p.stop_token_ids.push_back(letter(rng));
  if (rng.chance(load.logprobs)) p.logprobs = 0;
  if (rng.chance(load.prompt_logprobs)) p.prompt_logprobs = 0;
  if (rng.chance(load.n_above_one)) g.n = rng.between32(2, 4);
  const Tenant& tenant = rng.pick(std::span<const Tenant>(load.tenants));
  g.tenant = tenant.name;
  g.tenant_salt = tenant.salt;
  g.priority = rng.between32(0, load.priorities - 1);
  if (rng.chance(load.deadlines)) g.deadline = clock_->now_ns() + rng.between(1, 2000) * kMs;
  if (rng.chance(load.adapters)) ask.adapter = AdapterRef{"x", rng.chance(0.5) ? "digest-x" : "digest-y"};
  if (rng.chance(scenario_.faults.nan_request)) ask.nan_at = rng.between32(0, 8);
  return ask;
}

std::optional<Clients::Refusal> Clients::due_refusal(const GenerateRequest& g) const {
  const auto prompt = static_cast<int64_t>(g.prompt_token_ids.size());
  if (prompt == 0 || prompt + 1 > scenario_.scheduler.max_model_len || prompt > kv_tokens_)
    return Refusal::kInvalid;
  if (is_draining_ || engine_failed_) return Refusal::kUnavailable;
  const int32_t most = scenario_.scheduler.max_num_seqs + scenario_.max_waiting_requests;
  if (g.n > most) return Refusal::kInvalid;
  if (static_cast<int32_t>(open_.size()) + g.n > most) return Refusal::kQueueFull;
  if (open_prompt_tokens_ + prompt > kv_tokens_ + max_waiting_tokens_) return Refusal::kQueueFull;
  return std::nullopt;
}

void Clients::judge_answer(const Ask& ask, const StatusOr<RequestId>& answer, std::optional<Refusal> due) {
  const GenerateRequest& g = ask.generate;
  if (!answer.ok()) {
    ++refused_;
    const StatusCode code = answer.status().code();
    const bool is_right = due == Refusal::kInvalid       ? code == StatusCode::kInvalidArgument
                          : due == Refusal::kUnavailable ? code == StatusCode::kUnavailable
                                                         : code == StatusCode::kResourceExhausted;
    if (!due || !is_right)
      verdict_->fail("I9", fmt::format("a request of {} x {} tokens is refused ({}) with {} open: {}", g.n,
                                       g.prompt_token_ids.size(), is_draining_ ? "draining" : "serving",
                                       open_.size(), status_message(answer.status())));
    if (due == Refusal::kQueueFull && error_detail(answer.status()).retry_after_ms <= 0)
      verdict_->fail("I9", "a refusal for load does not say when to try again");
    return;
  }
  if (due)
    verdict_->fail("I9", fmt::format("a request of {} x {} tokens is accepted, though {}; {} are open", g.n,
                                     g.prompt_token_ids.size(),
                                     *due == Refusal::kInvalid       ? "it cannot be served"
                                     : *due == Refusal::kUnavailable ? "a drain began"
                                                                     : "the queue is full",
                                     open_.size()));
  const auto prompt = static_cast<int64_t>(g.prompt_token_ids.size());
  const auto room =
      static_cast<int32_t>(std::min(scenario_.scheduler.max_model_len - prompt, kv_tokens_ - prompt + 1));
  open_prompt_tokens_ += prompt;
  for (int32_t i = 0; i < g.n; ++i) {
    Choice choice;
    choice.parent = *answer;
    choice.index = i;
    choice.nan_at = ask.nan_at;
    Request& r = choice.request;
    r.id = *answer + static_cast<RequestId>(i);
    r.prompt_token_ids = g.prompt_token_ids;
    r.adapter = ask.adapter;
    r.tenant_salt = g.tenant_salt;
    r.tenant = g.tenant;
    r.priority = g.priority;
    r.deadline = g.deadline;
    r.arrival_ns = clock_->now_ns();
    if (!g.sampling.ignore_eos) r.eos_token_ids = {kOtherEnd, kEos};
    SamplingParams params = g.sampling;
    params.seed = splitmix64(g.sampling.seed, static_cast<uint64_t>(i));
    if (params.max_tokens <= 0 || params.max_tokens > room) params.max_tokens = room;
    r.params = params;
    choice.expected = expected_end(r, params.stop, choice.nan_at, scenario_.scheduler.max_model_len);
    open_.push_back(r.id);
    choices_.emplace(r.id, std::move(choice));
  }
}

void Clients::cancelled(RequestId parent) {
  for (auto it = choices_.find(parent); it != choices_.end() && it->second.parent == parent; ++it)
    if (!it->second.is_ended) it->second.is_cancelled = true;
}

bool Clients::is_open(RequestId id) const {
  const auto it = choices_.find(id);
  return it != choices_.end() && !it->second.is_ended;
}

std::vector<RequestId> Clients::open_parents() const {
  std::vector<RequestId> parents;
  for (RequestId id : open_)
    if (const RequestId parent = choices_.at(id).parent; parents.empty() || parents.back() != parent)
      parents.push_back(parent);
  return parents;
}

void Clients::fail(const char* invariant, const Choice& choice, const std::string& what) {
  verdict_->fail(invariant, fmt::format("choice {} of request {}: {}", choice.index, choice.parent, what));
}

void Clients::take(const RequestOutput& output) {
  const auto it = choices_.find(output.id + static_cast<RequestId>(output.index));
  if (it == choices_.end()) return verdict_->fail("I5", "an output for a request that was never accepted");
  Choice& choice = it->second;
  if (choice.is_ended) return fail("I5", choice, "an output after its end");
  judge_tokens(choice, output);
  if (!output.finish_reason) return;
  choice.is_ended = true;
  open_.erase(std::find(open_.begin(), open_.end(), choice.request.id));
  // Choices of one request have ids in a row; their prompt is open as long as one of them is.
  const auto is_sibling = [&](RequestId id) { return choices_.at(id).parent == choice.parent; };
  if (std::none_of(open_.begin(), open_.end(), is_sibling))
    open_prompt_tokens_ -= static_cast<int64_t>(choice.request.prompt_token_ids.size());
  judge_end(choice, output);
  judge_timeline(choice, output);
}

void Clients::judge_tokens(Choice& choice, const RequestOutput& output) {
  if (choice.tokens.empty() && !output.prompt_logprobs.empty()) judge_prompt_logprobs(choice, output);
  choice.tokens.insert(choice.tokens.end(), output.token_ids.begin(), output.token_ids.end());
  choice.text += output.text;
  if (!is_prefix(choice.tokens, choice.expected.tokens))
    return fail("I3", choice,
                fmt::format("{} tokens, which the model did not draw: [{}], not [{}]", choice.tokens.size(),
                            fmt::join(choice.tokens, " "), fmt::join(choice.expected.tokens, " ")));
  const bool is_cut_short =
      output.finish_reason == FinishReason::kAbort || output.finish_reason == FinishReason::kError;
  if (!is_prefix(choice.text, is_cut_short ? choice.expected.drawn : choice.expected.text))
    return fail("I3", choice, fmt::format("text '{}', not '{}'", choice.text, choice.expected.text));
  const size_t prompt = choice.request.prompt_token_ids.size();
  for (const PositionLogprobs& l : output.logprobs) {
    const size_t n = choice.logprobs++;
    if (n >= choice.expected.tokens.size() || l.sampled.id != choice.expected.tokens[n] ||
        l.sampled.logprob != logprob_of(prompt + n, l.sampled.id))
      return fail("I3", choice, fmt::format("the logprobs of token {} are another's", n));
  }
  if (output.usage.completion_tokens != static_cast<int32_t>(choice.tokens.size()))
    fail("I3", choice,
         fmt::format("usage says {} tokens, {} came", output.usage.completion_tokens, choice.tokens.size()));
}

void Clients::judge_prompt_logprobs(const Choice& choice, const RequestOutput& output) {
  const auto& prompt = choice.request.prompt_token_ids;
  if (output.prompt_logprobs.size() != prompt.size())
    return fail(
        "I3", choice,
        fmt::format("{} logprobs of a prompt of {} tokens", output.prompt_logprobs.size(), prompt.size()));
  for (size_t p = 1; p < prompt.size(); ++p) {
    const TokenLogprob& l = output.prompt_logprobs[p].sampled;
    if (l.id != prompt[p] || l.logprob != logprob_of(p, prompt[p]))
      return fail("I3", choice, fmt::format("the logprobs of prompt token {} are another's", p));
  }
}

void Clients::judge_end(Choice& choice, const RequestOutput& output) {
  const FinishReason reason = *output.finish_reason;
  const ExpectedEnd& expected = choice.expected;
  const bool is_whole = reason == FinishReason::kStop || reason == FinishReason::kLength;
  if (is_whole &&
      (reason != expected.reason || choice.tokens != expected.tokens || choice.text != expected.text))
    return fail("I3", choice,
                fmt::format("ends with '{}' after {} tokens '{}', not with '{}' after {} tokens '{}'",
                            to_string(reason), choice.tokens.size(), choice.text, to_string(expected.reason),
                            expected.tokens.size(), expected.text));
  if (is_whole && output.usage.cached_tokens != choice.cached)
    return fail("I8", choice,
                fmt::format("usage says {} cached tokens, the plan had {}", output.timeline.cached_tokens,
                            choice.cached));
  if (is_whole == !output.status.ok()) return fail("I5", choice, "its status does not fit its end");
  if (reason == FinishReason::kError && !engine_failed_ &&
      (expected.reason != FinishReason::kError || choice.tokens != expected.tokens))
    return fail("I5", choice, "ends with an error for no reason: " + status_message(output.status));
  if (reason != FinishReason::kAbort) return;
  const bool is_late = choice.request.deadline && *choice.request.deadline <= clock_->now_ns();
  if (output.status.code() == StatusCode::kDeadlineExceeded ? !is_late
                                                            : !choice.is_cancelled && !drain_ran_out_)
    fail("I5", choice, "is aborted for no reason: " + status_message(output.status));
}

void Clients::judge_timeline(const Choice& choice, const RequestOutput& output) {
  const RequestTimeline& t = output.timeline;
  if (t.finished_ns == 0 && engine_failed_) return;
  if (t.queue_ns() < 0 || t.prefill_ns() < 0 || t.decode_ns() < 0 || t.finished_ns > clock_->now_ns() ||
      t.arrival_ns != choice.request.arrival_ns)
    fail("I3", choice,
         fmt::format("the phases of its timeline do not add up: {} {} {} {}", t.arrival_ns,
                     t.first_scheduled_ns, t.first_token_ns, t.finished_ns));
}

}  // namespace omnibus::sim
