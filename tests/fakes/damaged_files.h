// Damaged copies of a good file, for every reader of files: cuts and single-bit flips, drawn from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace omnibus::fakes {

struct DamagedFile {
  std::string what;  // "cut at 123", "bit 5 of byte 77 flipped"
  bool cut = false;  // a cut file must be refused; a flip may leave a valid file
  std::vector<uint8_t> bytes;
};

// `cuts` files cut at random places, and `flips` files with one bit of the first `header_bytes` flipped.
inline std::vector<DamagedFile> damaged_files(const std::vector<uint8_t>& good, uint64_t header_bytes,
                                              int cuts, int flips, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DamagedFile> out;
  for (int i = 0; i < cuts; ++i) {
    const uint64_t size = random() % good.size();
    out.push_back({"cut at " + std::to_string(size), true, {good.begin(), good.begin() + size}});
  }
  for (int i = 0; i < flips; ++i) {
    const uint64_t byte = random() % header_bytes;
    const unsigned bit = random() % 8;
    out.push_back(
        {"bit " + std::to_string(bit) + " of byte " + std::to_string(byte) + " flipped", false, good});
    out.back().bytes[byte] ^= static_cast<uint8_t>(1u << bit);
  }
  return out;
}

}  // namespace omnibus::fakes
