// Named memory. Every large byte of omnibus comes from an Arena, so that the memory plan can be exact
// (docs/design.md, P3): the start-up table prints one row per arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"

namespace omnibus {

// One contiguous anonymous mapping, 2 MiB aligned, MADV_HUGEPAGE, zero-filled, handed out by bumping. Not
// thread-safe while allocating; the memory itself is plain. Movable, not copyable; freed with the object.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // RESOURCE_EXHAUSTED names the arena and the MiB when the mapping fails.
  static StatusOr<Arena> create(std::string_view name, size_t capacity_bytes);

  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // 64-byte aligned; nullptr when the arena is full (the caller planned wrongly).
  void* allocate(size_t bytes);
  // Forgets all allocations; memory stays mapped and keeps its contents.
  void reset() { used_ = 0; }

  const std::string& name() const { return name_; }
  void* data() const { return base_; }
  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  // Bytes an allocation of `bytes` really takes.
  static constexpr size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

 private:
  std::string name_;
  char* base_ = nullptr;     // aligned start
  void* mapping_ = nullptr;  // what mmap returned
  size_t mapping_bytes_ = 0;
  size_t capacity_ = 0;
  size_t used_ = 0;
};

}  // namespace omnibus
