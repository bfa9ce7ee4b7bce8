#include "engine_core.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/log.h"

namespace omnibus {
namespace {

#ifdef NDEBUG
constexpr bool kCheckWhenIdle = false;
#else
constexpr bool kCheckWhenIdle = true;
#endif

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
  while (p_.scheduler->has_work()) {
    OMNIBUS_ASSIGN_OR_RETURN(const auto events, step());
    for (const SequenceEvent& event : events) OMNIBUS_RETURN_IF_ERROR(event.status);
  }
  publish();
  return p_.scheduler->check_integrity();
}

void EngineCore::run() {
  bool more = true;
  while (more) {
    try {
      more = turn();
    } catch (const std::exception& e) {
      fail(absl::InternalError(std::string("exception in the engine thread: ") + e.what()));
    }
  }
  p_.outputs->flush();
}

bool EngineCore::turn() {
  p_.state->busy_since_ns = p_.clock->now_ns();
  while (auto command = p_.inbox->try_pop())
    if (!dispatch(**command)) return false;
  if (!failed_) {
    for (SequenceEvent& event : p_.scheduler->expire()) post(std::move(event));
  }
  if (failed_ || !p_.scheduler->has_work()) {
    idle();
    auto command = p_.inbox->pop();
    p_.state->busy_since_ns = p_.clock->now_ns();
    return command && dispatch(**command);
  }
  auto events = step();
  if (!events.ok()) {
    fail(events.status());
    return true;
  }
  for (SequenceEvent& event : *events) post(std::move(event));
  publish();  // before the flush: who sees an end sees the counts without it
  p_.outputs->flush();
  return true;
}

void EngineCore::idle() {
  publish();
  p_.outputs->flush();
  if (kCheckWhenIdle && !failed_) {
    if (const Status status = p_.scheduler->check_integrity(); !status.ok()) fail(status);
  }
  p_.state->busy_since_ns = 0;
}

StatusOr<std::vector<SequenceEvent>> EngineCore::step() {
  const SchedulerOutput plan = p_.scheduler->schedule();
  if (plan.rows.empty()) return absl::InternalError("the scheduler has work but plans no step");
  OMNIBUS_ASSIGN_OR_RETURN(const ModelRunnerOutput output, p_.executor->execute(plan).get());
  OMNIBUS_RETURN_IF_ERROR(check_tokens(output, p_.vocab_size));
  OMNIBUS_ASSIGN_OR_RETURN(auto events, p_.scheduler->update_from_output(plan, output));
  ++p_.state->steps;
  if (p_.check_integrity) OMNIBUS_RETURN_IF_ERROR(p_.scheduler->check_integrity());
  return events;
}

bool EngineCore::dispatch(EngineCommand& command) {
  return std::visit([this](auto& c) { return handle(c); }, command);
}

bool EngineCore::handle(SubmitCommand& command) {
  const RequestId parent_id = command.parent->id;
  // First, so that fail() finds every choice whatever goes wrong below.
  for (const Request& choice : command.choices) parent_of_[choice.id] = parent_id;
  p_.outputs->open(std::move(command.parent));
  for (Request& choice : command.choices) {
    const RequestId id = choice.id;
    p_.scheduler->add(std::move(choice));
    if (failed_) post(*p_.scheduler->abort(id, FinishReason::kError, engine_failed()));
  }
  return true;
}

bool EngineCore::handle(const CancelCommand& command) {
  for (int32_t i = 0; i < command.n; ++i) {
    auto event = p_.scheduler->abort(command.id + static_cast<RequestId>(i), FinishReason::kAbort,
                                     absl::CancelledError("the request was cancelled"));
    if (event) post(std::move(*event));
  }
  return true;
}

bool EngineCore::handle(const FinishCommand& command) {
  metrics_.surplus_tokens.add(p_.scheduler->finish(command.id, command.n_tokens));
  parent_of_.erase(command.id);
  return true;
}

bool EngineCore::handle(const AbortAllCommand& command) {
  abort_all(FinishReason::kAbort, command.why);
  return true;
}

bool EngineCore::handle(const ResetPrefixCacheCommand& command) {
  p_.scheduler->reset_prefix_cache();
  command.done->set_value();
  return true;
}

bool EngineCore::handle(const FailCommand& command) {
  fail(command.why);
  return true;
}

bool EngineCore::handle(const StopCommand& command) {
  abort_all(FinishReason::kAbort, command.why);
  return false;
}

void EngineCore::post(SequenceEvent event) {
  const auto it = parent_of_.find(event.id);
  OMNIBUS_CHECK(it != parent_of_.end(), "an event of a sequence that nobody opened");
  const bool is_end = event.finish_reason.has_value();
  p_.outputs->post(it->second, std::move(event));
  if (is_end) parent_of_.erase(it);
}

// Sequences that clients wait for but the scheduler does not know: an exception came between.
void EngineCore::end_strays(FinishReason reason, const Status& why) {
  while (!parent_of_.empty()) {
    SequenceEvent event;
    event.id = parent_of_.begin()->first;
    event.finish_reason = reason;
    event.status = why;
    event.time_ns = p_.clock->now_ns();
    RequestTimeline& t = event.timeline;
    t.arrival_ns = t.first_scheduled_ns = t.first_token_ns = t.finished_ns = event.time_ns;
    post(std::move(event));
  }
}

void EngineCore::abort_all(FinishReason reason, const Status& why) {
  for (RequestId id : p_.scheduler->ids()) {
    auto event = p_.scheduler->abort(id, reason, why);
    if (event) post(std::move(*event));
  }
  end_strays(reason, why);
  publish();
  p_.outputs->flush();
}

void EngineCore::fail(const Status& why) {
  if (failed_) return;
  failed_ = true;
  log_error("the engine failed: {}", status_message(why));
  p_.state->set_failure(why);
  p_.ledger->stop_admission(absl::UnavailableError("the engine has failed; the server must restart"));
  abort_all(FinishReason::kError, engine_failed());
}

void EngineCore::publish() {
  const Scheduler& s = *p_.scheduler;
  p_.state->running = s.num_running();
  p_.state->waiting = s.num_waiting();
  p_.state->used_blocks = s.kv().used_blocks();
  metrics_.running.set(s.num_running());
  metrics_.waiting.set(s.num_waiting());
  metrics_.kv_usage.set(s.kv().usage());
  metrics_.preemptions.add(static_cast<double>(s.num_preemptions() - preemptions_reported_));
  preemptions_reported_ = s.num_preemptions();
}

}  // namespace omnibus
