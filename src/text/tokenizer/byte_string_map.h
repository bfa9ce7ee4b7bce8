// ByteStringMap: byte strings to 32-bit values, built once, read by many threads. Open addressing at half
// load; the keys' bytes belong to the caller and must outlive the map.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace omnibus {

class ByteStringMap {
 public:
  static constexpr int32_t kAbsent = -1;

  // Room for `count` keys.
  explicit ByteStringMap(size_t count = 0) {
    size_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    slots_.resize(capacity);
  }

  // Keeps the value that came first; false when the key is there already.
  bool insert(std::string_view key, int32_t value) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find_slot(key, hash(key))];
    if (slot.value != kAbsent) return false;
    slot = {key.data(), static_cast<uint32_t>(key.size()), hash(key), value};
    ++used_;
    return true;
  }

  int32_t find(std::string_view key) const { return slots_[find_slot(key, hash(key))].value; }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t hash = 0;
    int32_t value = kAbsent;
  };

  static uint32_t hash(std::string_view key) {
    uint64_t state = key.size() * 0x9E3779B97F4A7C15u;
    const char* p = key.data();
    size_t left = key.size();
    for (; left >= 8; p += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      state = mix(state ^ word);
    }
    uint64_t tail = 0;
    if (left > 0) std::memcpy(&tail, p, left);
    state = mix(state ^ tail);
    return static_cast<uint32_t>(state >> 32);
  }

  static uint64_t mix(uint64_t x) {
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
  }

  size_t find_slot(std::string_view key, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.value == kAbsent) return i;
      if (slot.hash == hash && slot.size == key.size() &&
          std::memcmp(slot.data, key.data(), key.size()) == 0) {
        return i;
      }
    }
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value != kAbsent) slots_[find_slot({slot.data, slot.size}, slot.hash)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace omnibus
