#include "step_driver.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace omnibus {
namespace {

bool same(const TokenLogprob& a, const TokenLogprob& b) { return a.id == b.id && a.logprob == b.logprob; }
bool same(const std::vector<SampledLogprobs>& a, const std::vector<SampledLogprobs>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const SampledLogprobs& x, const SampledLogprobs& y) {
        return same(x.sampled, y.sampled) &&
               std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(),
                          [](const TokenLogprob& u, const TokenLogprob& v) { return same(u, v); });
      });
}

}  // namespace

bool DriverResult::operator==(const DriverResult& other) const {
  return tokens == other.tokens && status == other.status && same(logprobs, other.logprobs) &&
         same(prompt_logprobs, other.prompt_logprobs);
}

struct StepDriver::Sequence {
  const Request* request = nullptr;
  DriverResult result;
  std::vector<BlockId> blocks;
  int32_t computed = 0;
  bool known_to_worker = false;

  std::vector<TokenId> known() const {
    std::vector<TokenId> all = request->prompt_token_ids;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    return all;
  }
  bool done() const {
    return result.status != RowStatus::kOk ||
           static_cast<int32_t>(result.tokens.size()) >= request->sampling().max_tokens;
  }
};

void StepDriver::release(Sequence& s) {
  free_.insert(free_.end(), s.blocks.begin(), s.blocks.end());
  s.blocks.clear();
  s.computed = 0;
  s.known_to_worker = false;
}

bool StepDriver::make_row(Sequence& s, const DriverOptions& options, int32_t budget, SchedulerOutput& plan) {
  const std::vector<TokenId> known = s.known();
  ScheduledRow row;
  row.id = s.request->id;
  row.base_computed = s.computed;
  const int32_t left = static_cast<int32_t>(known.size()) - s.computed;
  row.n_tokens = std::min({left, options.chunk, budget});
  if (row.n_tokens < 1) return false;
  row.samples = row.n_tokens == left;
  if (row.samples && options.drafts) {
    row.drafts = options.drafts(row.id, known);
    row.n_tokens += static_cast<int32_t>(row.drafts.size());
  }
  const int32_t end = row.base_computed + row.n_tokens;
  row.new_blocks.resize(1);
  if (options.shuffle_blocks) std::shuffle(free_.begin(), free_.end(), rng_);
  while (static_cast<int32_t>(s.blocks.size()) * kTokensPerBlock < end) {
    if (free_.empty()) throw std::runtime_error("driver: out of blocks");
    s.blocks.push_back(free_.back());
    row.new_blocks[0].push_back(free_.back());
    free_.pop_back();
  }
  if (!s.known_to_worker) plan.new_requests.push_back({*s.request, s.result.tokens});
  s.known_to_worker = true;
  plan.rows.push_back(std::move(row));
  return true;
}

ModelRunnerOutput StepDriver::execute(const SchedulerOutput& plan) {
  const auto digest = worker_.prepare(plan).get();
  if (!digest.ok()) throw std::runtime_error(status_message(digest.status()));
  digest_ = *digest;
  auto output = worker_.commit(plan.id).get();
  if (!output.ok()) throw std::runtime_error(status_message(output.status()));
  return *std::move(output);
}

std::map<RequestId, DriverResult> StepDriver::run(const std::vector<Request>& requests,
                                                  const DriverOptions& options) {
  rng_.seed(options.seed);
  std::vector<Sequence> all(requests.size());
  std::deque<Sequence*> waiting;
  std::vector<Sequence*> running;
  for (size_t i = 0; i < requests.size(); ++i) {
    all[i].request = &requests[i];
    waiting.push_back(&all[i]);
  }
  while (!waiting.empty() || !running.empty()) {
    SchedulerOutput plan;
    plan.id = {epoch_, ++seq_};
    plan.numerics = numerics_;
    plan.finished = std::exchange(finished_, {});
    if (options.preempt_every > 0 && running.size() > 1 &&
        seq_ % static_cast<uint64_t>(options.preempt_every) == 0) {
      const size_t victim = rng_() % running.size();
      plan.preempted.push_back(running[victim]->request->id);
      release(*running[victim]);
      waiting.push_back(running[victim]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    while (!waiting.empty() && static_cast<int32_t>(running.size()) < options.max_running) {
      running.push_back(waiting.front());
      waiting.pop_front();
    }
    std::vector<Sequence*> scheduled;
    int32_t budget = options.step_tokens;
    for (Sequence* s : running)
      if (make_row(*s, options, budget, plan)) {
        budget -= plan.rows.back().n_tokens;
        scheduled.push_back(s);
      }
    const ModelRunnerOutput output = execute(plan);
    for (size_t i = 0; i < scheduled.size(); ++i) {
      Sequence& s = *scheduled[i];
      const RowOutput& out = output.rows[i];
      const ScheduledRow& row = plan.rows[i];
      const auto drafts = static_cast<int32_t>(row.drafts.size());
      s.computed = row.base_computed + row.n_tokens - drafts +
                   std::max(0, static_cast<int32_t>(out.tokens.size()) - 1);
      s.result.status = out.status;
      s.result.tokens.insert(s.result.tokens.end(), out.tokens.begin(), out.tokens.end());
      s.result.logprobs.insert(s.result.logprobs.end(), out.logprobs.begin(), out.logprobs.end());
      // A recomputed prompt reports its positions again.
      for (size_t p = 0; p < out.prompt_logprobs.size(); ++p)
        if (static_cast<size_t>(row.base_computed) + p == s.result.prompt_logprobs.size())
          s.result.prompt_logprobs.push_back(out.prompt_logprobs[p]);
      if (!s.done()) continue;
      const auto limit = static_cast<size_t>(s.request->sampling().max_tokens);
      if (s.result.tokens.size() > limit) s.result.tokens.resize(limit);  // surplus of accepted drafts
      if (s.result.logprobs.size() > limit) s.result.logprobs.resize(limit);
      finished_.push_back(s.request->id);
      release(s);
      running.erase(std::find(running.begin(), running.end(), &s));
    }
  }
  std::map<RequestId, DriverResult> results;
  for (Sequence& s : all) results[s.request->id] = std::move(s.result);
  return results;
}

}  // namespace omnibus
