// Cursor over little-endian bytes that never runs past their end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace omnibus::model_files {

static_assert(std::endian::native == std::endian::little, "GGUF is read on little-endian machines only");

class ByteReader {
 public:
  // `passed(begin, end)` is told about every kWindow bytes left behind, so that the pages of a mapping that
  // were only walked over do not pile up in memory.
  using PassedFn = std::function<void(uint64_t begin, uint64_t end)>;
  static constexpr uint64_t kWindow = 4 << 20;

  ByteReader(std::span<const uint8_t> bytes, PassedFn passed) : bytes_(bytes), passed_(std::move(passed)) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // False, and nothing moves, when fewer than `count` bytes remain.
  bool take(uint64_t count, const uint8_t** data) {
    if (count > remaining()) return false;
    *data = bytes_.data() + position_;
    position_ += count;
    if (position_ - reported_ >= kWindow) {
      passed_(reported_, position_);
      reported_ = position_;
    }
    return true;
  }

  template <typename T>
  bool read(T* value) {
    const uint8_t* data = nullptr;
    if (!take(sizeof(T), &data)) return false;
    std::memcpy(value, data, sizeof(T));
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
  PassedFn passed_;
  uint64_t position_ = 0;
  uint64_t reported_ = 0;
};

}  // namespace omnibus::model_files
