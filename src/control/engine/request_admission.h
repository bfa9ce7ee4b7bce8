// RequestAdmission: from a client's request to what the core takes, or a refusal. Everything about a request
// that can be wrong is found here, on the caller's thread.
#pragma once

#include <atomic>
#include <memory>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/control/scheduler/scheduler.h"
#include "omnibus/text/tokenizer/tokenizer.h"

#include "engine_command.h"
#include "request_ledger.h"

namespace omnibus {

// All outlive it. Of the scheduler only what it documents as thread-safe is used.
struct RequestAdmissionParts {
  const Scheduler* scheduler = nullptr;
  const Tokenizer* tokenizer = nullptr;
  RequestLedger* ledger = nullptr;
  const Clock* clock = nullptr;
};

// Any thread.
class RequestAdmission {
 public:
  explicit RequestAdmission(const RequestAdmissionParts& parts) : p_(parts) {}

  // What AsyncEngine::submit documents. On success the ledger counts the request's choices as open, and the
  // command, a SubmitCommand, must reach the core; it is ready to be pushed.
  StatusOr<std::unique_ptr<EngineCommand>> admit(GenerateRequest request, OutputSink sink);

 private:
  const RequestAdmissionParts p_;
  std::atomic<RequestId> next_id_{1};
};

// Open sequences and prompt tokens: what can run, and beyond it what may wait.
RequestLimits ledger_limits(const EngineConfig& config, const Scheduler& scheduler);

}  // namespace omnibus
