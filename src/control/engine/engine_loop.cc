#include "engine_loop.h"

#include <exception>
#include <string>

namespace omnibus {
namespace {

#ifdef NDEBUG
constexpr bool kCheckWhenIdle = false;
#else
constexpr bool kCheckWhenIdle = true;
#endif

// False: stop.
bool wait_for_work(EngineCore& core, EngineInbox& inbox) {
  core.flush();
  if (kCheckWhenIdle && !core.failed()) {
    if (const Status status = core.check_integrity(); !status.ok()) core.fail(status);
  }
  const auto command = inbox.pop();
  return command && core.handle(**command);
}

bool turn(EngineCore& core, EngineInbox& inbox) {
  while (const auto command = inbox.try_pop())
    if (!core.handle(**command)) return false;
  core.expire();
  core.launch();
  if (!core.step_in_flight()) return wait_for_work(core, inbox);
  core.complete();
  core.flush();
  return true;
}

}  // namespace

void run_engine(EngineCore& core, EngineInbox& inbox) {
  bool more = true;
  while (more) {
    try {
      more = turn(core, inbox);
    } catch (const std::exception& e) {
      core.fail(absl::InternalError(std::string("exception in the engine thread: ") + e.what()));
    }
  }
  core.flush();
}

}  // namespace omnibus
