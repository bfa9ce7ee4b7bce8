// What other threads ask of the engine: the values in its inbox.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <variant>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/queue.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "parent_request.h"

namespace omnibus {

struct SubmitCommand {
  std::shared_ptr<const ParentRequest> parent;
  std::vector<Request> choices;
};
struct CancelCommand {
  RequestId id = 0;  // of the parent
  int32_t n = 0;
};
// A stop string was found in output token n_tokens - 1.
struct FinishCommand {
  RequestId id = 0;
  int32_t n_tokens = 0;
};
struct AbortAllCommand {
  Status why;
};
struct ResetPrefixCacheCommand {
  std::shared_ptr<std::promise<void>> done;
};
struct SetFairSharingCommand {
  FairSharing sharing;
};
// Answered in EngineState::pings_answered: the engine's thread turns.
struct PingCommand {
  uint64_t number = 0;
};
struct FailCommand {
  Status why;
};
struct StopCommand {
  Status why;
};
using EngineCommand =
    std::variant<SubmitCommand, CancelCommand, FinishCommand, AbortAllCommand, ResetPrefixCacheCommand,
                 SetFairSharingCommand, PingCommand, FailCommand, StopCommand>;
using EngineInbox = BoundedQueue<std::unique_ptr<EngineCommand>>;

}  // namespace omnibus
