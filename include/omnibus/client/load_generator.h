// LoadGenerator: sends planned requests to a server and notes when each part of each answer arrived.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/base/config/bench_options.h"
#include "omnibus/client/endpoint.h"
#include "omnibus/client/load_plan.h"

namespace omnibus::client {

enum class FailureKind {
  kNone,
  kConnect,    // no connection, or TLS failed
  kClosed,     // the connection broke, or ended, before the answer did
  kTimeout,    // not done within the time-out
  kStatus,     // an HTTP status that is not 200
  kMalformed,  // not HTTP, not an event stream, not JSON, or without an end
  kError,      // an "error" object in a 200 answer
  kCancelled,  // the run was stopped
};

// One request. Times are nanoseconds after the start of the run; 0: it has not come to that.
struct RequestRecord {
  PlannedRequest planned;
  MonotonicNs sent = 0;              // before connecting, if it had to be
  MonotonicNs ended = 0;             // the last event with a choice; without a stream, the end of the answer
  std::vector<MonotonicNs> outputs;  // arrival of each event with text; empty without a stream
  bool has_usage = false;            // the server told the counts below; else they stay 0
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  std::string finish_reason;
  FailureKind failure = FailureKind::kNone;
  int http_status = 0;
  std::string error;  // of a failure
  bool ok() const { return failure == FailureKind::kNone; }
};

struct LoadProgress {
  int64_t planned = 0, sent = 0, done = 0, failed = 0;  // `done` counts failed ones too
  int64_t outputs = 0;                                  // events with text so far
  MonotonicNs elapsed = 0;
  int64_t running() const { return sent - done; }
};

struct LoadResult {
  std::vector<RequestRecord> records;  // in the order of the plan; those never sent are cancelled
  MonotonicNs start = 0;               // the clock at the start of the run
  MonotonicNs duration = 0;            // from the first request sent to the last answer ended
  int64_t connections = 0;             // opened
  int64_t retries = 0;                 // sent again because a kept connection had been closed meanwhile
  int64_t peak_concurrency = 0;
  MonotonicNs worst_lag = 0;  // longest time between when a request was due and when it was sent
};

struct LoadJob {
  Endpoint endpoint;
  std::string path;
  bool stream = true;
  std::vector<PlannedRequest> plan;
  std::vector<std::string> bodies;  // JSON, one for each planned request
  int64_t max_concurrency = 0;      // 0: no limit
  MonotonicNs request_timeout = 0;
};

// The bodies of `prompts` with all that the options say about requests.
std::vector<std::string> request_bodies(const BenchServeConfig& config, const std::string& model,
                                        const std::vector<PlannedRequest>& plan,
                                        const std::vector<std::string>& prompts);

// Runs the job on the calling thread. `stop`, set from any thread or a signal handler and never reset, ends
// it within 50 ms; nothing is sent any more once it is set. `on_progress` is called every 50 ms and at the
// end. Fails only when the job cannot start (certificates).
StatusOr<LoadResult> run_load(const LoadJob& job, const Clock& clock, const std::atomic<bool>& stop,
                              const std::function<void(const LoadProgress&)>& on_progress);

// "connect", "closed", "timeout", "http 429", ...
std::string failure_name(const RequestRecord& record);

}  // namespace omnibus::client
