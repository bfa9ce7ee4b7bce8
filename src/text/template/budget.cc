#include "budget.h"

#include <algorithm>
#include <string>

#include "template_error.h"

namespace omnibus::jinja {
namespace {

// Native frames of the evaluator that may be nested; about 1 MiB of stack in a plain build.
constexpr int32_t kMaxNested = 1500;
// Steps between two looks at the clock.
constexpr int64_t kStepsPerCheck = 256;
// Variables alone may be as large as a request's body.
constexpr int64_t kLeastMemory = int64_t{64} << 20;

[[noreturn]] void overrun(const std::string& what) {
  throw TemplateError(TemplateError::Kind::kBudget, "the template " + what);
}

}  // namespace

Budget::Budget(const TemplateBudget& limits)
    : limits_(limits),
      memory_limit_(std::max(limits.output_bytes * 32, kLeastMemory)),
      deadline_(clock_.now_ns() + limits.milliseconds * 1'000'000) {}

void Budget::check() {
  if (steps_ > limits_.steps) overrun("needs more than " + std::to_string(limits_.steps) + " steps");
  if (clock_.now_ns() > deadline_) overrun("ran longer than " + std::to_string(limits_.milliseconds) + " ms");
  next_check_ = std::min(steps_ + kStepsPerCheck, limits_.steps + 1);
}

void Budget::check_text(size_t bytes) const {
  if (bytes > static_cast<size_t>(std::max<int64_t>(limits_.output_bytes, 0)))
    overrun("makes a text longer than " + std::to_string(limits_.output_bytes) + " bytes");
}

void Budget::allocate(size_t bytes) {
  live_bytes_ += static_cast<int64_t>(bytes);
  if (live_bytes_ > memory_limit_) {
    live_bytes_ -= static_cast<int64_t>(bytes);
    overrun("needs more than " + std::to_string(memory_limit_ >> 20) + " MiB of memory");
  }
}

void Budget::enter_call() {
  if (call_depth_ >= limits_.depth)
    overrun("nests calls deeper than " + std::to_string(limits_.depth) + " levels");
  ++call_depth_;
}

void Budget::enter_nested() {
  if (nested_depth_ >= kMaxNested)
    overrun("nests expressions deeper than " + std::to_string(kMaxNested) + " levels");
  ++nested_depth_;
}

}  // namespace omnibus::jinja
