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
bool wait_for_command(EngineCore& core, EngineInbox& inbox) {
  if (kCheckWhenIdle && !core.failed()) {
    if (const Status status = core.check_integrity(); !status.ok()) core.fail(status);
  }
  const auto command = inbox.pop();
  return command && core.handle(**command);
}

Status status_of(const std::exception& e) {
  try {
    return absl::InternalError(std::string("exception in the engine thread: ") + e.what());
  } catch (const std::exception&) {
    return {StatusCode::kInternal, ""};  // needs no memory, which is what is missing
  }
}

// What this throws in its turn, for want of memory, is made up for at the next command.
void fail(EngineCore& core, const std::exception& e) {
  try {
    core.fail(status_of(e));
  } catch (const std::exception&) {
  }
}

bool turn(EngineCore& core, EngineInbox& inbox) {
  switch (run_until_wait(core, inbox)) {
    case EngineWait::kStop:
      return false;
    case EngineWait::kCommand:
      return wait_for_command(core, inbox);
    case EngineWait::kStep:
      break;
  }
  core.complete();
  core.flush();
  return true;
}

}  // namespace

EngineWait run_until_wait(EngineCore& core, EngineInbox& inbox) {
  while (const auto command = inbox.try_pop())
    if (!core.handle(**command)) return EngineWait::kStop;
  core.expire();
  // Who was cancelled or is late hears of it now, not when the next step is done.
  core.flush();
  core.launch();
  if (core.step_in_flight()) return EngineWait::kStep;
  core.flush();
  return EngineWait::kCommand;
}

void run_engine(EngineCore& core, EngineInbox& inbox) {
  bool more = true;
  while (more) {
    try {
      more = turn(core, inbox);
    } catch (const std::exception& e) {
      fail(core, e);
    }
  }
  try {
    core.flush();
  } catch (const std::exception& e) {
    fail(core, e);
  }
}

}  // namespace omnibus
