// Communicator: tensors between the ranks of one group, for one epoch. Calls in program order from one
// thread; every call has a deadline; nothing throws; after any non-OK status the object is dead and answers
// ABORTED. Sums follow one fixed tree over shard units, so the tensor-parallel size does not change a bit
// (docs/design.md, Numerics).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/dtype.h"

namespace omnibus {

class Stream;  // null on the CPU

struct CommCtx {
  Stream* stream = nullptr;
  MonotonicNs deadline = 0;
};

using MutSpan = std::span<uint8_t>;
using ConstSpan = std::span<const uint8_t>;
enum class ReduceOp : uint8_t { kSum, kMax };

// Handle of a posted transfer.
struct Pending {
  uint64_t ticket = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  virtual Status all_reduce(CommCtx ctx, MutSpan buffer, DType dtype, ReduceOp op) = 0;  // in place
  virtual Status all_gather(CommCtx ctx, ConstSpan mine, MutSpan all) = 0;  // uneven shares concatenate
  virtual Status reduce_scatter(CommCtx ctx, MutSpan buffer, MutSpan mine, DType dtype) = 0;
  virtual Status all_to_all_v(CommCtx ctx, ConstSpan send, std::span<const int64_t> send_bytes, MutSpan recv,
                              std::span<const int64_t> recv_bytes) = 0;
  virtual Status broadcast(CommCtx ctx, MutSpan buffer, int32_t root) = 0;
  virtual Status barrier(CommCtx ctx) = 0;
  virtual StatusOr<Pending> post_send(CommCtx ctx, ConstSpan buffer, int32_t to) = 0;
  virtual StatusOr<Pending> post_recv(CommCtx ctx, MutSpan buffer, int32_t from) = 0;
  virtual Status wait(Pending pending, MonotonicNs deadline) = 0;
  virtual void abort() noexcept = 0;  // any thread, idempotent, returns at once
  virtual uint64_t epoch() const = 0;
};

// The group of one rank: sums are themselves, transfers to oneself are copies.
std::unique_ptr<Communicator> make_self_communicator(uint64_t epoch);

}  // namespace omnibus
