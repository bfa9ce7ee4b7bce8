#include "omnibus/compute/core/allocator.h"

#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/arena.h"

namespace omnibus {
namespace {

constexpr double kMiB = 1 << 20;

class ArenaAllocator final : public Allocator {
 public:
  explicit ArenaAllocator(Arena arena) : arena_(std::move(arena)) {}

  StatusOr<Buffer> allocate(size_t bytes) override {
    if (bytes == 0) return Buffer{arena_.data(), 0, device()};
    void* data = bytes <= arena_.capacity() ? arena_.allocate(bytes) : nullptr;
    if (data == nullptr) {
      return absl::ResourceExhaustedError(fmt::format(
          "arena '{}': {:.2f} MiB asked, {:.2f} of {:.2f} MiB left", name(),
          static_cast<double>(bytes) / kMiB, static_cast<double>(arena_.capacity() - arena_.used()) / kMiB,
          static_cast<double>(arena_.capacity()) / kMiB));
    }
    return Buffer{data, bytes, device()};
  }
  size_t used_bytes() const override { return arena_.used(); }
  const std::string& name() const override { return arena_.name(); }
  Device device() const override { return {DeviceKind::kCpu, 0}; }

 private:
  Arena arena_;
};

class MetaAllocator final : public Allocator {
 public:
  explicit MetaAllocator(std::string name) : name_(std::move(name)) {}

  StatusOr<Buffer> allocate(size_t bytes) override {
    used_ += Arena::padded(bytes);
    return Buffer{nullptr, bytes, device()};
  }
  size_t used_bytes() const override { return used_; }
  const std::string& name() const override { return name_; }
  Device device() const override { return {DeviceKind::kMeta, 0}; }

 private:
  std::string name_;
  size_t used_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Allocator>> make_arena_allocator(const std::string& name, size_t capacity) {
  OMNIBUS_ASSIGN_OR_RETURN(Arena arena, Arena::create(name, capacity));
  return std::make_unique<ArenaAllocator>(std::move(arena));
}

std::unique_ptr<Allocator> make_meta_allocator(const std::string& name) {
  return std::make_unique<MetaAllocator>(name);
}

}  // namespace omnibus
