// ByteBudget: how much all request bodies together may take, from their first byte until their handler is
// done with them. What one connection may send is the route's limit; this one bounds ten thousand of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace omnibus {

// Any thread.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}

  bool try_take(uint64_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= limit_) return true;
    used_.fetch_sub(bytes);
    return false;
  }
  void give_back(uint64_t bytes) { used_.fetch_sub(bytes); }
  uint64_t used() const { return used_.load(); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// What one body has taken; gives it back when it is destroyed.
class BodyLease {
 public:
  explicit BodyLease(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ~BodyLease() { budget_->give_back(bytes_); }
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;

  // False: there is no room for a body of `bytes` in all.
  bool grow_to(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_->try_take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  const std::shared_ptr<ByteBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace omnibus
