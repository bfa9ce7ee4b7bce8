// What one render may spend: steps, bytes, depth and time. Every loop of the engine charges here, so that no
// template and no input can make the server hang or run out of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omnibus/base/common/clock.h"
#include "omnibus/text/template/chat_template.h"

namespace omnibus::jinja {

class Budget {
 public:
  explicit Budget(const TemplateBudget& limits);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // One unit of interpreter work (a node evaluated, an item visited).
  void step(int64_t n = 1) {
    steps_ += n;
    if (steps_ >= next_check_) [[unlikely]]
      check();
  }
  // Cheap per-item work: copying `n` values or bytes.
  void bulk(size_t n) { step(static_cast<int64_t>(n >> 6) + 1); }
  // A text of `bytes` is about to exist; refuses more than the output limit.
  void check_text(size_t bytes) const;
  // Memory that lives as long as its owner (texts) or as long as the render (containers).
  void allocate(size_t bytes);
  void release(size_t bytes) { live_bytes_ -= static_cast<int64_t>(bytes); }

  // Macro calls and recursive loops.
  void enter_call();
  void leave_call() { --call_depth_; }
  // Nested evaluation of any kind: protects the native stack.
  void enter_nested();
  void leave_nested() { --nested_depth_; }

  int64_t steps() const { return steps_; }

 private:
  void check();

  const TemplateBudget limits_;
  const int64_t memory_limit_;
  const SteadyClock clock_;
  const MonotonicNs deadline_;
  int64_t steps_ = 0;
  int64_t next_check_ = 0;
  int64_t live_bytes_ = 0;
  int32_t call_depth_ = 0;
  int32_t nested_depth_ = 0;
};

class CallGuard {
 public:
  explicit CallGuard(Budget& budget) : budget_(budget) { budget_.enter_call(); }
  ~CallGuard() { budget_.leave_call(); }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  Budget& budget_;
};

class NestGuard {
 public:
  explicit NestGuard(Budget& budget) : budget_(budget) { budget_.enter_nested(); }
  ~NestGuard() { budget_.leave_nested(); }
  NestGuard(const NestGuard&) = delete;
  NestGuard& operator=(const NestGuard&) = delete;

 private:
  Budget& budget_;
};

}  // namespace omnibus::jinja
