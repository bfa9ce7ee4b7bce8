#include "omnibus/server/admin/lifecycle.h"

namespace omnibus {
namespace {

const char* name_of(EngineTrouble trouble) {
  switch (trouble) {
    case EngineTrouble::kNone:
      return "";
    case EngineTrouble::kDraining:
      return "draining";
    case EngineTrouble::kStalled:
      return "stalled";
    case EngineTrouble::kFailed:
      return "failed";
  }
  return "failed";
}

}  // namespace

std::chrono::seconds Lifecycle::uptime() const {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::nanoseconds(clock_.now_ns() - started_ns_));
}

std::string Lifecycle::why_not_live() const {
  const AsyncEngine* engine = engine_;
  if (engine == nullptr) return {};  // a load that fails ends the process
  const EngineTrouble trouble = engine->health().trouble;
  return trouble == EngineTrouble::kDraining ? "" : name_of(trouble);
}

std::string Lifecycle::why_not_ready() const {
  const AsyncEngine* engine = engine_;
  if (engine == nullptr) return draining_ ? "draining" : "loading";
  const std::string reason = name_of(engine->health().trouble);
  return reason.empty() && draining_ ? "draining" : reason;
}

}  // namespace omnibus
