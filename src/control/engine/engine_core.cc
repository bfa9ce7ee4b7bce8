#include "engine_core.h"

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/log.h"
#include "omnibus/base/common/mutant.h"

namespace omnibus {
namespace {

Status check_tokens(const ModelRunnerOutput& output, int32_t vocab_size) {
  for (const RowOutput& row : output.rows)
    for (TokenId token : row.tokens)
      if (token < 0 || token >= vocab_size)
        return absl::InternalError("the worker sampled token id " + std::to_string(token) +
                                   ", which is not in the vocabulary of " + std::to_string(vocab_size));
  return absl::OkStatus();
}

// What a client is told; the cause goes to the log and to health().
Status engine_failed() {
  return absl::InternalError("the engine failed while this request was running; the server must restart");
}

// Memory may be what is missing.
void log_trouble(const char* what, std::string_view why) {
  try {
    log_error("{}: {}", what, why);
  } catch (const std::exception&) {
  }
}

}  // namespace

Status EngineCore::warm_up() {
  Request request;
  request.id = 0;  // clients' ids begin at 1
  request.arrival_ns = p_.clock->now_ns();
  request.prompt_token_ids.assign(4, 0);
  while (request.prompt_token_ids.size() > 1 &&
         p_.scheduler->max_output_tokens(static_cast<int64_t>(request.prompt_token_ids.size())) < 2)
    request.prompt_token_ids.pop_back();
  const auto prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  OMNIBUS_RETURN_IF_ERROR(p_.scheduler->can_serve(prompt_tokens));
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.max_tokens = std::min(2, p_.scheduler->max_output_tokens(prompt_tokens));
  request.params = sampling;
  p_.scheduler->add(std::move(request));
  while (p_.scheduler->has_work() || step_in_flight()) {
    OMNIBUS_RETURN_IF_ERROR(launch_one().status());
    OMNIBUS_ASSIGN_OR_RETURN(const auto events, take_oldest());
    for (const SequenceEvent& event : events) OMNIBUS_RETURN_IF_ERROR(event.status);
  }
  warm_ = true;
  shown_ = counts();  // clients asked for none of it
  flush();
  return p_.scheduler->check_integrity();
}

bool EngineCore::handle(EngineCommand& command) {
  const bool more = std::visit([this](auto& c) { return take(c); }, command);
  if (failed_) end_leftovers();
  return more;
}

void EngineCore::expire() {
  if (failed_) return;
  for (SequenceEvent& event : p_.scheduler->expire()) post(std::move(event));
}

bool EngineCore::launch() {
  bool launched = false;
  while (!failed_ && static_cast<int32_t>(in_flight_.size()) < p_.max_steps_in_flight) {
    const StatusOr<bool> more = launch_one();
    if (!more.ok()) {
      fail(more.status());
      return launched;
    }
    if (!*more) return launched;
    launched = true;
  }
  return launched;
}

StatusOr<bool> EngineCore::launch_one() {
  if (!p_.scheduler->has_work()) return false;
  const MonotonicNs began = p_.clock->now_ns();
  SchedulerOutput plan = p_.scheduler->schedule();
  if (plan.rows.empty()) {
    if (in_flight_.empty()) return absl::InternalError("the scheduler has work but plans no step");
    return false;
  }
  if (warm_) publish();  // what the step now runs with, not what was there before it
  StepInFlight step;
  const MonotonicNs launched = p_.clock->now_ns();
  step.host_ns = launched - began;
  step.load = load_of(plan);
  step.allowed_ns =
      warm_ ? allowed_step_ns(cost_.predict_ns(step.load), p_.step_timeout_ns) : kFirstStepsAllowedNs;
  // What the update reads of a plan. Prompts and blocks are the worker's: copies of them would cost more than
  // all the rest of a step.
  step.plan.id = plan.id;
  step.plan.rows = std::move(spare_rows_);
  step.plan.rows.clear();
  step.plan.rows.reserve(plan.rows.size());
  for (const ScheduledRow& row : plan.rows) {
    ScheduledRow& kept = step.plan.rows.emplace_back();
    kept.id = row.id;
    kept.base_computed = row.base_computed;
    kept.n_tokens = row.n_tokens;
    kept.source = row.source;
    kept.drafts = row.drafts;
    kept.samples = row.samples;
  }
  in_flight_.push_back(std::move(step));
  if (in_flight_.size() == 1) watch_oldest(launched);
  in_flight_.back().result = p_.executor->execute(std::move(plan));
  return true;
}

// One step runs at a time: the next begins when the one before it has ended.
void EngineCore::watch_oldest(MonotonicNs since) {
  if (in_flight_.empty()) return p_.state->set_watch({});
  p_.state->set_watch({in_flight_.front().plan.id.seq, since, in_flight_.front().allowed_ns});
}

void EngineCore::complete() {
  if (in_flight_.empty()) return;
  auto events = take_oldest();
  if (!events.ok()) return fail(events.status());
  for (SequenceEvent& event : *events) post(std::move(event));
}

StatusOr<std::vector<SequenceEvent>> EngineCore::take_oldest() {
  const StatusOr<ModelRunnerOutput> output = in_flight_.front().result.get();
  StepInFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const MonotonicNs now = p_.clock->now_ns();
  OMNIBUS_RETURN_IF_ERROR(output.status());
  if (!(output->id == step.plan.id))
    return absl::InternalError("the worker answered step " + std::to_string(output->id.seq) + ", not step " +
                               std::to_string(step.plan.id.seq));
  watch_oldest(now);
  if (output->duration_ns > 0) cost_.observe(step.load, output->duration_ns);
  if (cost_.fitted()) p_.scheduler->set_step_target(cost_.cost(), p_.step_target_ns);
  OMNIBUS_RETURN_IF_ERROR(check_tokens(*output, p_.vocab_size));
  OMNIBUS_ASSIGN_OR_RETURN(auto events, p_.scheduler->update_from_output(step.plan, *output));
  spare_rows_ = std::move(step.plan.rows);
  ++p_.state->steps;
  if (warm_)
    metrics_.add_step({step.load.tokens, output->duration_ns, step.host_ns + p_.clock->now_ns() - now});
  if (p_.check_integrity) OMNIBUS_RETURN_IF_ERROR(p_.scheduler->check_integrity());
  return events;
}

EngineCounts EngineCore::counts() const {
  const Scheduler& s = *p_.scheduler;
  EngineCounts counts;
  counts.running = s.num_running();
  counts.waiting = s.num_waiting();
  counts.kv_usage = s.kv().usage();
  counts.preemptions = s.num_preemptions();
  counts.prefix_queries = s.prefix_cache_queries();
  counts.prefix_hits = s.prefix_cache_hits();
  return counts;
}

void EngineCore::publish() {
  const EngineCounts now = counts();
  p_.state->running = now.running;
  p_.state->waiting = now.waiting;
  p_.state->used_blocks = p_.scheduler->kv().used_blocks();
  metrics_.publish(now, shown_);
}

void EngineCore::flush() {
  publish();
  p_.outputs->flush();  // last: who sees an end sees the counts without it
}

bool EngineCore::take(SubmitCommand& command) {
  try {
    open(command);
  } catch (const std::exception& e) {
    command.choices.clear();  // room to answer in
    give_up(*command.parent);
    log_trouble("a request could not be taken in", e.what());
  }
  return true;
}

// All or, by an exception, a part; its outputs last, so that none of it has been posted then.
void EngineCore::open(SubmitCommand& command) {
  for (Request& choice : command.choices) {
    open_[choice.id] = {command.parent->id, choice.arrival_ns};
    if (!failed_) p_.scheduler->add(std::move(choice));
  }
  p_.outputs->open(command.parent);
}

// This request ends, and the rest goes on. Allocates nothing.
void EngineCore::give_up(const ParentRequest& request) {
  for (int32_t i = 0; i < request.n; ++i) {
    const RequestId id = request.id + static_cast<RequestId>(i);
    p_.scheduler->abort(id, FinishReason::kError, no_memory_);
    open_.erase(id);
  }
  metrics_.add_refusal(no_memory_);
  p_.outputs->refuse(request, no_memory_);
}

bool EngineCore::take(const CancelCommand& command) {
  if (OMNIBUS_MUTANT(14) && step_in_flight()) return true;
  if (failed_) return true;
  expire();  // a client that leaves at its deadline was late, not gone
  for (int32_t i = 0; i < command.n; ++i) {
    auto event = p_.scheduler->abort(command.id + static_cast<RequestId>(i), FinishReason::kAbort,
                                     absl::CancelledError("the request was cancelled"));
    if (event) {
      post(std::move(*event));
    } else if (OMNIBUS_MUTANT(15)) {
      SequenceEvent again;
      again.id = command.id + static_cast<RequestId>(i);
      again.finish_reason = FinishReason::kAbort;
      p_.outputs->post(command.id, std::move(again));
    }
  }
  return true;
}

bool EngineCore::take(const FinishCommand& command) {
  if (failed_) return true;
  metrics_.surplus_tokens.add(p_.scheduler->finish(command.id, command.n_tokens));
  open_.erase(command.id);
  return true;
}

bool EngineCore::take(const AbortAllCommand& command) {
  if (!failed_) abort_all(FinishReason::kAbort, command.why);
  return true;
}

bool EngineCore::take(const ResetPrefixCacheCommand& command) {
  p_.scheduler->reset_prefix_cache();
  command.done->set_value();
  return true;
}

bool EngineCore::take(SetFairSharingCommand& command) {
  p_.scheduler->set_fair_sharing(std::move(command.sharing));
  return true;
}

bool EngineCore::take(const PingCommand& command) {
  p_.state->pings_answered = command.number;
  return true;
}

bool EngineCore::take(const FailCommand& command) {
  fail(command.why);
  return true;
}

bool EngineCore::take(const StopCommand& command) {
  try {
    if (!failed_) abort_all(FinishReason::kAbort, command.why);
  } catch (const std::exception& e) {  // the last command all the same
    log_trouble("requests could not be ended", e.what());
  }
  return false;
}

void EngineCore::post(SequenceEvent&& event) {
  const auto it = open_.find(event.id);
  OMNIBUS_CHECK(it != open_.end(), "an event of a sequence that nobody opened");
  const bool is_end = event.finish_reason.has_value();
  p_.outputs->post(it->second.parent, std::move(event));
  if (is_end) open_.erase(it);
}

// Sequences that clients wait for but the scheduler does not know: an exception came between.
void EngineCore::end_strays(FinishReason reason, const Status& why) {
  const std::map<RequestId, OpenSequence> strays = open_;
  for (const auto& [id, sequence] : strays) {
    SequenceEvent event;
    event.id = id;
    event.finish_reason = reason;
    event.status = why;
    event.time_ns = p_.clock->now_ns();
    RequestTimeline& t = event.timeline;
    t.arrival_ns = sequence.arrival_ns;
    t.first_scheduled_ns = t.first_token_ns = t.finished_ns = event.time_ns;
    post(std::move(event));
  }
}

// After a failure: who came late, or was left open by an exception. The scheduler is not asked again, which
// may stand half-way through an end. What there is no memory for now waits for the next command.
void EngineCore::end_leftovers() {
  try {
    end_strays(FinishReason::kError, engine_failed());
  } catch (const std::exception& e) {
    log_trouble("requests could not be ended", e.what());
  }
}

void EngineCore::abort_all(FinishReason reason, const Status& why) {
  for (RequestId id : p_.scheduler->ids()) {
    auto event = p_.scheduler->abort(id, reason, why);
    if (event) post(std::move(*event));
  }
  end_strays(reason, why);
  flush();
}

void EngineCore::fail(const Status& why) {
  const bool is_first = !std::exchange(failed_, true);
  // First what allocates nothing.
  metrics_.up.set(0);
  in_flight_.clear();  // their answers mean nothing any more
  watch_oldest(0);
  p_.state->set_failure(why);
  if (is_first)
    log_trouble("the engine failed", std::string_view(why.message().data(), why.message().size()));
  p_.ledger->stop_admission(absl::UnavailableError("the engine has failed; the server must restart"));
  if (is_first) return abort_all(FinishReason::kError, engine_failed());
  end_leftovers();
  flush();
}

}  // namespace omnibus
