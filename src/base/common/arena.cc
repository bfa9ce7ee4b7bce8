#include "omnibus/base/common/arena.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace omnibus {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

StatusOr<Arena> Arena::create(std::string_view name, size_t capacity_bytes) {
  Arena arena;
  arena.name_ = name;
  arena.capacity_ = padded(capacity_bytes);
  if (arena.capacity_ == 0) return arena;
  arena.mapping_bytes_ = arena.capacity_ + kHugePage;
  void* p = mmap(nullptr, arena.mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    arena.mapping_bytes_ = 0;
    return absl::ResourceExhaustedError(fmt::format("arena '{}': cannot map {:.1f} MiB: {}", name,
                                                    static_cast<double>(capacity_bytes) / (1 << 20),
                                                    std::strerror(errno)));
  }
  arena.mapping_ = p;
  const auto address = reinterpret_cast<uintptr_t>(p);
  arena.base_ = reinterpret_cast<char*>((address + kHugePage - 1) / kHugePage * kHugePage);
  madvise(arena.base_, arena.capacity_, MADV_HUGEPAGE);  // a hint: without huge pages it is only slower
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(base_, other.base_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(capacity_, other.capacity_);
  std::swap(used_, other.used_);
  return *this;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void* Arena::allocate(size_t bytes) {
  const size_t size = padded(bytes);
  if (size > capacity_ - used_) return nullptr;
  void* p = base_ + used_;
  used_ += size;
  return p;
}

}  // namespace omnibus
