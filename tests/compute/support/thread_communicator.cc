#include "thread_communicator.h"

#include <barrier>
#include <cstring>
#include <vector>

namespace omnibus {
namespace {

struct Group {
  explicit Group(int32_t n) : barrier(n), buffers(static_cast<size_t>(n)) {}
  std::barrier<> barrier;
  std::vector<float*> buffers;
};

float tree_sum(const std::vector<float*>& buffers, size_t begin, size_t end, size_t i) {
  if (end - begin == 1) return buffers[begin][i];
  const size_t middle = begin + (end - begin + 1) / 2;
  return tree_sum(buffers, begin, middle, i) + tree_sum(buffers, middle, end, i);
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int32_t rank) : group_(std::move(group)), rank_(rank) {}
  int32_t rank() const override { return rank_; }
  int32_t size() const override { return static_cast<int32_t>(group_->buffers.size()); }
  uint64_t epoch() const override { return 1; }
  void abort() noexcept override {}

  Status all_reduce(CommCtx, MutSpan buffer, DType dtype, ReduceOp op) override {
    if (dtype != DType::kF32 || op != ReduceOp::kSum) return refuse();
    std::vector<float> mine(buffer.size() / sizeof(float));
    std::memcpy(mine.data(), buffer.data(), buffer.size());
    group_->buffers[static_cast<size_t>(rank_)] = mine.data();
    group_->barrier.arrive_and_wait();
    auto* out = reinterpret_cast<float*>(buffer.data());
    for (size_t i = 0; i < mine.size(); ++i) out[i] = tree_sum(group_->buffers, 0, group_->buffers.size(), i);
    group_->barrier.arrive_and_wait();
    return absl::OkStatus();
  }
  Status barrier(CommCtx) override {
    group_->barrier.arrive_and_wait();
    return absl::OkStatus();
  }
  Status all_gather(CommCtx, ConstSpan, MutSpan) override { return refuse(); }
  Status reduce_scatter(CommCtx, MutSpan, MutSpan, DType) override { return refuse(); }
  Status all_to_all_v(CommCtx, ConstSpan, std::span<const int64_t>, MutSpan,
                      std::span<const int64_t>) override {
    return refuse();
  }
  Status broadcast(CommCtx, MutSpan, int32_t) override { return refuse(); }
  StatusOr<Pending> post_send(CommCtx, ConstSpan, int32_t) override { return refuse(); }
  StatusOr<Pending> post_recv(CommCtx, MutSpan, int32_t) override { return refuse(); }
  Status wait(Pending, MonotonicNs) override { return refuse(); }

 private:
  static Status refuse() { return absl::UnimplementedError("ThreadCommunicator: f32 sums only"); }
  const std::shared_ptr<Group> group_;
  const int32_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int32_t ranks) {
  const auto group = std::make_shared<Group>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int32_t rank = 0; rank < ranks; ++rank)
    communicators.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return communicators;
}

}  // namespace omnibus
