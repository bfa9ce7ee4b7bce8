#include "request_ledger.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "omnibus/base/common/mutant.h"

namespace omnibus {
namespace {

constexpr double kRemembersNs = 60e9;  // ends this long ago count a third

}  // namespace

Status RequestLedger::open(RequestId id, int32_t n, int32_t prompt_tokens) {
  std::lock_guard lock(mutex_);
  if (!stopped_.ok() && !OMNIBUS_MUTANT(16)) return stopped_;
  if (n > limits_.max_sequences)
    return invalid_field("n", "n is " + std::to_string(n) + ", but this server runs and queues at most " +
                                  std::to_string(limits_.max_sequences) + " sequences at a time");
  const OpenRequests wanted{open_.sequences + n, open_.prompt_tokens + prompt_tokens};
  const int64_t counted = OMNIBUS_MUTANT(17) ? open_.sequences : wanted.sequences;
  const bool too_many = counted > limits_.max_sequences;
  const bool too_long = wanted.prompt_tokens > limits_.max_prompt_tokens;
  if (too_many || too_long) {
    ErrorDetail detail;
    detail.code = "rate_limit_exceeded";
    detail.retry_after_ms = retry_after_ms(wanted);
    return with_detail(
        absl::ResourceExhaustedError(too_many ? "the server's request queue is full; try again later"
                                              : "too many prompt tokens are queued; try again later"),
        detail);
  }
  entries_[id] = {n, n, prompt_tokens, false};
  // Time without work says nothing about how fast ends follow each other.
  if (open_.sequences == 0) counted_until_ns_ = clock_->now_ns();
  set_open(wanted);
  return absl::OkStatus();
}

Status RequestLedger::check_group(const OpenRequests& group) const {
  std::lock_guard lock(mutex_);
  if (group.sequences > limits_.max_sequences)
    return invalid_field("prompt", "prompt and n ask for " + std::to_string(group.sequences) +
                                       " sequences, but this server runs and queues at most " +
                                       std::to_string(limits_.max_sequences) + " at a time");
  if (group.prompt_tokens > limits_.max_prompt_tokens)
    return invalid_field("prompt", "the prompts have " + std::to_string(group.prompt_tokens) +
                                       " tokens, but this server runs and queues at most " +
                                       std::to_string(limits_.max_prompt_tokens) + " at a time");
  return absl::OkStatus();
}

// Room comes with the ends of sequences: as many usual gaps between ends as ends are needed, each taken to
// free its share of the prompts that are open.
int64_t RequestLedger::retry_after_ms(const OpenRequests& wanted) const {
  const auto over_sequences = static_cast<double>(wanted.sequences - limits_.max_sequences);
  const auto over_tokens = static_cast<double>(wanted.prompt_tokens - limits_.max_prompt_tokens);
  const double share = std::max(
      static_cast<double>(open_.prompt_tokens) / static_cast<double>(std::max<int64_t>(open_.sequences, 1)),
      1.0);
  const double ends = std::max({over_sequences, std::ceil(over_tokens / share), 1.0});
  const double gap_ns = busy_ns_ / std::max(ends_, 1.0);
  // A rounding error is not another second.
  const double seconds = std::ceil(ends * gap_ns / 1e9 - 1e-3);
  return static_cast<int64_t>(std::clamp(seconds, 1.0, 60.0)) * 1000;
}

// Under the lock, so that what is shown last is what holds.
void RequestLedger::set_open(const OpenRequests& open) {
  open_ = open;
  shown_prompt_tokens_.set(static_cast<double>(open.prompt_tokens));
}

void RequestLedger::set_limits(const RequestLimits& limits) {
  std::lock_guard lock(mutex_);
  limits_ = limits;
}

OpenRequests RequestLedger::open_requests() const {
  std::lock_guard lock(mutex_);
  return open_;
}

void RequestLedger::close_one(RequestId id, bool was_served) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  count_end(was_served);
  const bool is_last = --it->second.open == 0;
  set_open({open_.sequences - 1, open_.prompt_tokens - (is_last ? it->second.prompt_tokens : 0)});
  if (is_last) entries_.erase(it);
  if (open_.sequences == 0) emptied_.notify_all();
}

// Weighted by time, so that ends which come together count as many ends in the time since those before them.
// Whoever left or ran out of time says nothing about when others will have been served.
void RequestLedger::count_end(bool was_served) {
  const MonotonicNs now = clock_->now_ns();
  const auto gap_ns = static_cast<double>(now - counted_until_ns_);
  const double kept = std::exp(-gap_ns / kRemembersNs);
  counted_until_ns_ = now;
  busy_ns_ = busy_ns_ * kept + gap_ns;
  const bool is_measured = busy_ns_ > 0;
  ends_ = ends_ * kept + (was_served && is_measured ? 1 : 0);
}

std::optional<int32_t> RequestLedger::cancel(RequestId id) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.cancelled) return std::nullopt;
  it->second.cancelled = true;
  return it->second.n;
}

void RequestLedger::stop_admission(Status why) {
  std::lock_guard lock(mutex_);
  if (stopped_.ok()) stopped_ = std::move(why);
}

bool RequestLedger::admission_stopped() const {
  std::lock_guard lock(mutex_);
  return !stopped_.ok();
}

bool RequestLedger::wait_empty(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, limit, [&] { return open_.sequences == 0; });
}

}  // namespace omnibus
