#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <string>

#include <fmt/format.h>

#include "omnibus/compute/comm/communicator.h"

namespace omnibus {
namespace {

// A group of one. Sends and receives to oneself meet in the order they are posted.
class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(uint64_t epoch) : epoch_(epoch) {}

  int32_t rank() const override { return 0; }
  int32_t size() const override { return 1; }
  uint64_t epoch() const override { return epoch_; }
  void abort() noexcept override { dead_.store(true, std::memory_order_release); }

  Status all_reduce(CommCtx, MutSpan buffer, DType dtype, ReduceOp) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    return whole_elements(buffer.size(), dtype);
  }
  Status all_gather(CommCtx, ConstSpan mine, MutSpan all) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    return copy("all_gather", mine, all);
  }
  Status reduce_scatter(CommCtx, MutSpan buffer, MutSpan mine, DType dtype) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    OMNIBUS_RETURN_IF_ERROR(whole_elements(buffer.size(), dtype));
    return copy("reduce_scatter", buffer, mine);
  }
  Status all_to_all_v(CommCtx, ConstSpan send, std::span<const int64_t> send_bytes, MutSpan recv,
                      std::span<const int64_t> recv_bytes) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    if (send_bytes.size() != 1 || recv_bytes.size() != 1 ||
        send_bytes[0] != static_cast<int64_t>(send.size()) ||
        recv_bytes[0] != static_cast<int64_t>(recv.size()))
      return fail("all_to_all_v: byte counts do not describe the buffers of a group of one");
    return copy("all_to_all_v", send, recv);
  }
  Status broadcast(CommCtx, MutSpan, int32_t root) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    return root == 0 ? absl::OkStatus() : fail(fmt::format("broadcast: no rank {} in a group of one", root));
  }
  Status barrier(CommCtx) override { return alive(); }

  StatusOr<Pending> post_send(CommCtx, ConstSpan buffer, int32_t to) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    if (to != 0) return fail(fmt::format("post_send: no rank {} in a group of one", to));
    sends_.push_back({next_ticket_, buffer, {}});
    OMNIBUS_RETURN_IF_ERROR(match());
    return Pending{next_ticket_++};
  }
  StatusOr<Pending> post_recv(CommCtx, MutSpan buffer, int32_t from) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    if (from != 0) return fail(fmt::format("post_recv: no rank {} in a group of one", from));
    receives_.push_back({next_ticket_, {}, buffer});
    OMNIBUS_RETURN_IF_ERROR(match());
    return Pending{next_ticket_++};
  }
  // Nobody else can post the other half while this thread waits: what has not met yet never will.
  Status wait(Pending pending, MonotonicNs) override {
    OMNIBUS_RETURN_IF_ERROR(alive());
    const auto is_it = [&](const Transfer& t) { return t.ticket == pending.ticket; };
    if (std::any_of(sends_.begin(), sends_.end(), is_it) ||
        std::any_of(receives_.begin(), receives_.end(), is_it)) {
      dead_.store(true, std::memory_order_release);
      return absl::DeadlineExceededError("wait: the other half of the transfer was not posted");
    }
    return absl::OkStatus();
  }

 private:
  struct Transfer {
    uint64_t ticket;
    ConstSpan from;
    MutSpan to;
  };

  Status alive() const {
    return dead_.load(std::memory_order_acquire) ? absl::AbortedError("the communicator was aborted")
                                                 : absl::OkStatus();
  }
  Status fail(const std::string& message) {
    dead_.store(true, std::memory_order_release);
    return absl::InvalidArgumentError(message);
  }
  Status whole_elements(size_t bytes, DType dtype) {
    if (bytes % static_cast<size_t>(dtype_bytes(dtype)) == 0) return absl::OkStatus();
    return fail(fmt::format("{} bytes are no whole number of {} elements", bytes, to_string(dtype)));
  }
  Status copy(const char* call, ConstSpan from, MutSpan to) {
    if (from.size() != to.size())
      return fail(fmt::format("{}: {} bytes sent, {} bytes of room", call, from.size(), to.size()));
    if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
    return absl::OkStatus();
  }
  Status match() {
    while (!sends_.empty() && !receives_.empty()) {
      OMNIBUS_RETURN_IF_ERROR(copy("post_send", sends_.front().from, receives_.front().to));
      sends_.pop_front();
      receives_.pop_front();
    }
    return absl::OkStatus();
  }

  const uint64_t epoch_;
  std::atomic<bool> dead_{false};
  uint64_t next_ticket_ = 1;
  std::deque<Transfer> sends_, receives_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(uint64_t epoch) {
  return std::make_unique<SelfCommunicator>(epoch);
}

}  // namespace omnibus
