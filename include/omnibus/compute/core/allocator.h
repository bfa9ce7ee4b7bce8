// Allocator and Buffer: device memory from named arenas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/dtype.h"

namespace omnibus {

// A range of device memory. On kMeta `data` is null and only `bytes` counts. Does not own: the allocator
// does.
struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
  Device device;
};

// Hands out 64-byte aligned buffers that live as long as the allocator. One thread.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual StatusOr<Buffer> allocate(size_t bytes) = 0;
  virtual size_t used_bytes() const = 0;  // padding included
  virtual const std::string& name() const = 0;
  virtual Device device() const = 0;
};

// From one Arena of `capacity` bytes (2 MiB aligned, huge pages); RESOURCE_EXHAUSTED names arena and MiB.
StatusOr<std::unique_ptr<Allocator>> make_arena_allocator(const std::string& name, size_t capacity);
// Counts only; never fails.
std::unique_ptr<Allocator> make_meta_allocator(const std::string& name);

}  // namespace omnibus
