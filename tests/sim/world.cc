#include "world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fakes/piece_tokenizer.h"

namespace omnibus::sim {
namespace {

constexpr int64_t kTickNs = 200 * kMs;
constexpr int64_t kStallNoticedNs = kSecond;    // a stall shows this long after the step's time
constexpr int64_t kDrainGraceNs = 3 * kSecond;  // the step in flight, and delivery
constexpr size_t kAnswersKept = 4;
constexpr size_t kInboxCapacity = 1 << 20;
constexpr int64_t kLastDrainNs = 20'000 * kSecond;

std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto made = fakes::make_piece_tokenizer({});
  return made;
}

EngineConfig engine_config(const Scenario& s) {
  EngineConfig c;
  c.max_model_len = s.scheduler.max_model_len;
  c.max_num_seqs = s.scheduler.max_num_seqs;
  c.max_num_batched_tokens = s.scheduler.max_num_batched_tokens;
  c.max_waiting_requests = s.max_waiting_requests;
  c.max_waiting_tokens = s.max_waiting_tokens;
  return c;
}

Status shutting_down() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

World::World(const Scenario& scenario, bool echo)
    : scenario_(scenario),
      trace_(&clock_, echo),
      verdict_(&clock_),
      client_rng_(SimRng(splitmix64(scenario.seed, 3)).fork("clients")),
      fault_rng_(SimRng(splitmix64(scenario.seed, 4)).fork("faults")),
      cost_rng_(SimRng(splitmix64(scenario.seed, 4)).fork("costs")),
      tokenizer_(tokenizer()),
      clients_(scenario_, &clock_, &verdict_),
      worker_(scenario_, &verdict_,
              [this](RequestId id) -> std::optional<int32_t> {
                const auto it = clients_.choices().find(id);
                return it == clients_.choices().end() ? std::nullopt : it->second.nan_at;
              }),
      executor_(scenario_, &clock_, &heap_, &worker_),
      inbox_(kInboxCapacity),
      plans_(scenario_, &clock_, &clients_, &verdict_) {
  executor_.set_hooks({[this](const SchedulerOutput& plan) { on_plan(plan); }, [this] { on_reply(); }});
}

bool World::start() {
  auto made = Scheduler::create(scenario_.scheduler, scenario_.kv, &clock_);
  if (!made.ok()) {
    verdict_.fail("setup", status_message(made.status()));
    return false;
  }
  scheduler_ = std::move(made).value();
  const EngineMetrics metrics(registry_, "sim");
  state_.emplace();
  ledger_.emplace(ledger_limits(engine_config(scenario_), *scheduler_), &clock_);
  admission_.emplace(RequestAdmissionParts{scheduler_.get(), tokenizer_.get(), &*ledger_, &clock_});
  outputs_.emplace(0, tokenizer_, &*ledger_, metrics, [this](RequestId id, int32_t n_tokens) {
    send(FinishCommand{id, n_tokens});
  });
  EngineCoreParts parts;
  parts.scheduler = scheduler_.get();
  parts.executor = &executor_;
  parts.outputs = &*outputs_;
  parts.ledger = &*ledger_;
  parts.state = &*state_;
  parts.clock = &clock_;
  parts.vocab_size = tokenizer_->vocab_size();
  parts.max_steps_in_flight = scenario_.scheduler.max_steps_in_flight;
  parts.step_timeout_ns = scenario_.step_timeout_ns;
  parts.step_target_ns = scenario_.step_target_ns;
  core_.emplace(parts, metrics);
  detector_.emplace(&*state_, [this](uint64_t number) {
    send(PingCommand{number});
    wake();
  });
  blocks_.emplace(scenario_, scheduler_.get(), &worker_, &clients_, &verdict_);
  if (const Status warm = core_->warm_up(); !warm.ok()) verdict_.fail("I12", status_message(warm));
  executor_.begin_virtual_time();
  return verdict_.ok();
}

RunResult World::run() {
  trace_.add(describe(scenario_));
  if (start()) {
    post_arrivals();
    post_faults();
    heap_.post(clock_.now_ns(), "tick", [this] { tick(); });
    while (verdict_.ok() && !heap_.empty()) {
      const Event event = heap_.pop();
      if (event.at > clock_.now_ns()) clock_.advance_ns(event.at - clock_.now_ns());
      ++events_;
      event.run();
    }
    if (verdict_.ok()) check_at_end();
  }
  RunResult result;
  if (const auto& v = verdict_.violation()) trace_.add(v->invariant + " does not hold: " + v->what);
  result.violation = verdict_.violation();
  result.trace_hash = trace_.hash();
  result.events = events_;
  result.simulated_ns = clock_.now_ns();
  result.counts = worker_.counts();
  result.accepted = clients_.accepted();
  result.refused = clients_.refused();
  result.happened = happened_;
  result.trace_tail = trace_.tail();
  return result;
}

void World::post_arrivals() {
  const Load& load = scenario_.load;
  MonotonicNs at = clock_.now_ns();
  for (int32_t i = 0; i < load.requests; ++i) {
    if (!client_rng_.chance(load.burst)) at += client_rng_.between(0, 2 * load.mean_gap_ns);
    heap_.post(at, "ask", [this] { ask(); });
  }
  for (int32_t i = 0; i < load.storms; ++i)
    heap_.post(client_rng_.between(0, at), "storm", [this] { cancel_everything(); });
  const MonotonicNs drain_at = load.drains ? clock_.now_ns() + load.drain_at_ns : at + 1;
  heap_.post(drain_at, "drain", [this] { begin_drain(); });
}

void World::post_faults() {
  const int64_t span = scenario_.load.mean_gap_ns * scenario_.load.requests + kSecond;
  for (int32_t i = 0; i < scenario_.faults.clock_pauses; ++i)
    heap_.post(clock_.now_ns() + fault_rng_.between(0, span), "pause", [this] {
      clock_.advance_ns(fault_rng_.between(2, 200) * kSecond);
      paused_at_ = clock_.now_ns();
      trace_.add("the clock jumped");
      happened("pause");
    });
}

void World::send(EngineCommand command) {
  inbox_.try_push(std::make_unique<EngineCommand>(std::move(command)));
}

void World::wake() {
  if (!core_->step_in_flight()) turn();
}

void World::turn() {
  EngineWait wait = EngineWait::kCommand;
  do {
    see_commands();
    note_late();
    wait = run_until_wait(*core_, inbox_);
    judge_due_ends();
    if (wait == EngineWait::kCommand && core_->has_work())
      verdict_.fail("I12", "requests could run, but no step is in flight");
  } while (wait == EngineWait::kCommand && inbox_.size() > 0 && verdict_.ok());
  check_after_event();
}

// What the engine is about to take in.
void World::see_commands() {
  std::vector<std::unique_ptr<EngineCommand>> commands;
  while (auto command = inbox_.try_pop()) commands.push_back(std::move(*command));
  for (auto& command : commands) {
    if (auto* submit = std::get_if<SubmitCommand>(&*command)) see(*submit);
    if (const auto* cancel = std::get_if<CancelCommand>(&*command)) see(*cancel);
    inbox_.try_push(std::move(command));
  }
}

void World::see(SubmitCommand& submit) {
  for (Request& choice : submit.choices) {
    Choice& known = clients_.choices().at(choice.id);
    known.is_handled = true;
    if (!known.request.adapter) continue;
    // No door takes adapters yet.
    choice.adapter = known.request.adapter;
    choice.prefix_keys.clear();
  }
}

void World::see(const CancelCommand& cancel) {
  for (int32_t i = 0; i < cancel.n; ++i) {
    const RequestId id = cancel.id + static_cast<RequestId>(i);
    if (!clients_.is_open(id)) continue;
    due_ends_.push_back(id);
    plans_.cancel_was_handled(id);
  }
}

void World::note_late() {
  for (RequestId id : clients_.open()) {
    const Choice& choice = clients_.choices().at(id);
    if (choice.is_handled && choice.request.deadline && *choice.request.deadline <= clock_.now_ns())
      due_ends_.push_back(id);
  }
}

// Whoever was cancelled or is late has heard of it before the engine waits again.
void World::judge_due_ends() {
  for (RequestId id : due_ends_) {
    if (!clients_.is_open(id)) continue;
    const bool is_late = !clients_.choices().at(id).is_cancelled;
    verdict_.fail(is_late ? "I10" : "I5",
                  fmt::format("request {} goes on, though {}", id,
                              is_late ? "its deadline has passed" : "it was cancelled"));
  }
  due_ends_.clear();
}

void World::on_plan(const SchedulerOutput& plan) {
  for (const NewRequestData& data : plan.new_requests) {
    const auto it = clients_.choices().find(data.request.id);
    if (it == clients_.choices().end() || it->second.cached >= 0) continue;
    for (const ScheduledRow& row : plan.rows)
      if (row.id == data.request.id) it->second.cached = row.base_computed;
  }
  std::string ids;
  for (const ScheduledRow& row : plan.rows)
    ids += fmt::format(" {}:{}+{}{}", row.id, row.base_computed, row.n_tokens, row.samples ? "" : "..");
  trace_.add(fmt::format("step {} new {} preempted {} finished {} rows{}", plan.id.seq,
                         plan.new_requests.size(), fmt::join(plan.preempted, ","),
                         fmt::join(plan.finished, ","), ids));
  if (asked_ > 0) plans_.take(plan, worker_);
}

void World::on_reply() {
  if (!core_->step_in_flight()) return executor_.forget_all();
  answered_.push_back(executor_.answer_oldest());
  if (answered_.size() > kAnswersKept) answered_.pop_front();
  trace_.add(fmt::format("reply {}", answered_.back().plan.id.seq));
  if (!answered_.back().output.ok()) clients_.engine_failed();
  core_->complete();
  core_->flush();
  if (scenario_.odd_costs) scheduler_->set_step_target(next_odd_cost(), scenario_.step_target_ns);
  answer_twice();
  if (verdict_.ok() && fault_rng_.chance(scenario_.buggify.reset_prefix_cache)) {
    trace_.add("reset of the prefix cache");
    happened("reset");
    send(ResetPrefixCacheCommand{std::make_shared<std::promise<void>>()});
    worker_.reset_prefix_cache();
  }
  turn();
}

StepCost World::next_odd_cost() {
  const auto ns = [&] { return cost_rng_.pick({0.0, 1.0, 1e5, 1e9}); };
  return {ns(), ns(), ns()};
}

// A reply that comes again changes nothing.
void World::answer_twice() {
  if (core_->failed() || !fault_rng_.chance(scenario_.faults.duplicate_reply)) return;
  const auto& step =
      answered_[static_cast<size_t>(fault_rng_.between(0, static_cast<int64_t>(answered_.size()) - 1))];
  happened("reply twice");
  const auto ids = scheduler_->ids();
  const auto events = scheduler_->update_from_output(step.plan, *step.output);
  if ((events.ok() && !events->empty()) || scheduler_->ids() != ids)
    verdict_.fail("I3", fmt::format("the reply to step {} took effect twice", step.plan.id.seq));
}

void World::ask() {
  ++asked_;
  const Clients::Ask ask = clients_.next_ask(client_rng_);
  const auto due = clients_.due_refusal(ask.generate);
  auto command = admission_->admit(ask.generate, [this](RequestOutput output) { hand_over(output); });
  const StatusOr<RequestId> answer = command.ok()
                                         ? StatusOr<RequestId>(std::get<SubmitCommand>(**command).parent->id)
                                         : StatusOr<RequestId>(command.status());
  clients_.judge_answer(ask, answer, due);
  trace_.add(fmt::format("ask n {} prompt {}: {}", ask.generate.n, ask.generate.prompt_token_ids.size(),
                         answer.ok() ? std::to_string(*answer) : status_message(answer.status())));
  if (!command.ok()) return;
  send(std::move(**command));
  wake();
  if (!client_rng_.chance(scenario_.load.cancels)) return;
  const MonotonicNs at = clock_.now_ns() + client_rng_.between(0, scenario_.load.cancel_within_ns);
  heap_.post(at, "cancel", [this, id = *answer] { cancel(id); });
}

void World::hand_over(const RequestOutput& output) {
  // The cause first: all that follows from it is told apart by nobody.
  if (const Status failure = state_->failure(); !failure.ok() && scenario_.faults.failure_at == 0)
    verdict_.fail("I12", "the engine failed: " + status_message(failure));
  clients_.take(output);
  if (output.finish_reason) {
    const bool is_late = output.status.code() == StatusCode::kDeadlineExceeded;
    happened(is_late ? "late" : to_string(*output.finish_reason));
    trace_.add(fmt::format("end {}.{} {} {} tokens", output.id, output.index,
                           to_string(*output.finish_reason), output.usage.completion_tokens));
  } else if (client_rng_.chance(scenario_.load.leavers)) {
    leave(output.id);
  }
}

void World::cancel(RequestId parent) {
  leave(parent);
  wake();
}

// The engine's thread hears of it when it next looks into its inbox.
void World::leave(RequestId parent) {
  const auto n = ledger_->cancel(parent);
  if (!n) return;
  trace_.add(fmt::format("cancel {}", parent));
  clients_.cancelled(parent);
  send(CancelCommand{parent, *n});
}

void World::cancel_everything() {
  for (RequestId parent : clients_.open_parents()) cancel(parent);
}

void World::begin_drain() {
  trace_.add("drain");
  ledger_->stop_admission(shutting_down());
  clients_.drain_began();
  drain_ends_at_ = clock_.now_ns() + (scenario_.load.drains ? scenario_.load.drain_limit_ns : kLastDrainNs);
  heap_.post(drain_ends_at_, "drain's end", [this] { end_drain(); });
}

void World::end_drain() {
  if (clients_.open().empty()) return;
  trace_.add("the drain's time is up");
  happened("drain cut short");
  if (!scenario_.load.drains && scenario_.faults.clock_pauses == 0)
    verdict_.fail("I12", fmt::format("{} choices are not answered in hours", clients_.open().size()));
  clients_.drain_ran_out();
  send(AbortAllCommand{shutting_down()});
  wake();
}

void World::tick() {
  if (clients_.is_draining() && clients_.open().empty() && asked_ == scenario_.load.requests) return;
  const bool is_stalled = detector_->tick(clock_.now_ns());
  judge_stall(is_stalled);
  if (is_stalled) happened("tick of a stall");
  const bool stall_in_flight = !executor_.in_flight().empty() && executor_.in_flight().front().is_stalled;
  const MonotonicNs late = std::max(drain_ends_at_, paused_at_) + kDrainGraceNs;
  if (drain_ends_at_ != 0 && clock_.now_ns() > late && !stall_in_flight && !clients_.open().empty())
    verdict_.fail("I10", fmt::format("{} choices outlive the drain", clients_.open().size()));
  heap_.post(clock_.now_ns() + kTickNs, "tick", [this] { tick(); });
}

void World::judge_stall(bool is_stalled) {
  const bool is_fault = !executor_.in_flight().empty() && executor_.in_flight().front().is_stalled;
  if (is_stalled && !is_fault) verdict_.fail("I12", "the watchdog calls a stall, but nothing stands still");
  const StepWatch watch = state_->watch();
  if (is_stalled || !is_fault || core_->failed() || watch.started_ns == 0) return;
  const MonotonicNs since = std::max(watch.started_ns, paused_at_);
  if (clock_.now_ns() - since > watch.allowed_ns + kStallNoticedNs)
    verdict_.fail("I12", "a step stands still, but the watchdog is silent");
}

void World::check_after_event() {
  if (const Status failure = state_->failure(); !failure.ok() && scenario_.faults.failure_at == 0)
    verdict_.fail("I12", "the engine failed: " + status_message(failure));
  if (verdict_.ok()) blocks_->check();
}

void World::check_at_end() {
  for (const auto& [id, choice] : clients_.choices())
    if (!choice.is_ended) verdict_.fail("I5", fmt::format("request {} was accepted and never ended", id));
  if (scheduler_->has_work()) verdict_.fail("I5", "the scheduler still knows of requests");
  if (scheduler_->kv().used_blocks() != 0)
    verdict_.fail("I1", fmt::format("{} blocks are used in the end", scheduler_->kv().used_blocks()));
}

RunResult run_seed(uint64_t seed, bool echo) { return World(draw_scenario(seed), echo).run(); }

}  // namespace omnibus::sim
