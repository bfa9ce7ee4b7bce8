// RequestLedger: which requests are open, and whether one more may come in. The only place where the engine
// refuses for load or drain. All methods from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// Of running and waiting together. A prompt counts once however many sequences share its KV.
struct RequestLimits {
  int64_t max_sequences = 0;
  int64_t max_prompt_tokens = 0;  // no less than the longest prompt that can be served
};

struct OpenRequests {
  int64_t sequences = 0;
  int64_t prompt_tokens = 0;
};

class RequestLedger {
 public:
  // `prompt_tokens`: shows those of all that is open, at any time.
  RequestLedger(const RequestLimits& limits, const Clock* clock, Gauge prompt_tokens = {})
      : limits_(limits), clock_(clock), shown_prompt_tokens_(prompt_tokens) {}

  // 503 once admission is stopped, 429 with Retry-After when a limit is reached, 400 when n alone is beyond
  // the limit. OK: n sequences are open.
  Status open(RequestId id, int32_t n, int32_t prompt_tokens);
  // What a client asks for in one go, as several requests that are taken all or none: 400 naming the prompt
  // when it would not be taken with nothing else there.
  Status check_group(const OpenRequests& group) const;
  // One sequence of the request has ended: it ran to its end, or it was cut short. Its prompt is open until
  // the last has.
  void close_one(RequestId id, bool was_served = true);
  // How many sequences a cancel concerns; nullopt when the request is not open or cancelled already.
  std::optional<int32_t> cancel(RequestId id);

  // For requests that come from now on; those that are open stay.
  void set_limits(const RequestLimits& limits);
  OpenRequests open_requests() const;

  // From now on open() answers `why`.
  void stop_admission(Status why);
  bool admission_stopped() const;
  // True once nothing is open; false after `limit`.
  bool wait_empty(std::chrono::milliseconds limit);

 private:
  struct Entry {
    int32_t n = 0;
    int32_t open = 0;
    int32_t prompt_tokens = 0;
    bool cancelled = false;
  };
  int64_t retry_after_ms(const OpenRequests& wanted) const;
  void set_open(const OpenRequests& open);
  void count_end(bool was_served);

  RequestLimits limits_;
  const Clock* const clock_;
  const Gauge shown_prompt_tokens_;
  mutable std::mutex mutex_;  // guards what follows, and the limits
  std::condition_variable emptied_;
  std::map<RequestId, Entry> entries_;
  OpenRequests open_;
  Status stopped_;
  // Ends of sequences that were served, and the time with work in which they came; both fade.
  double ends_ = 0;
  double busy_ns_ = 0;
  MonotonicNs counted_until_ns_ = 0;
};

}  // namespace omnibus
