// Writes GGUF files in memory, right ones and wrong ones. Independent of the reader under test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/store/model_files/gguf.h"

namespace omnibus::fakes {

class GgufWriter {
 public:
  using Bytes = std::vector<uint8_t>;

  // Each set_* replaces a pair of the same key, or appends one.
  void set_u8(std::string_view key, uint8_t value);
  void set_i8(std::string_view key, int8_t value);
  void set_u16(std::string_view key, uint16_t value);
  void set_i16(std::string_view key, int16_t value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_u64(std::string_view key, uint64_t value);
  void set_i64(std::string_view key, int64_t value);
  void set_f32(std::string_view key, float value);
  void set_f64(std::string_view key, double value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_strings(std::string_view key, const std::vector<std::string>& values);
  void set_i32s(std::string_view key, const std::vector<int32_t>& values);
  void set_u8s(std::string_view key, const std::vector<uint8_t>& values);
  void set_f32s(std::string_view key, const std::vector<float>& values);
  void set_bools(std::string_view key, const std::vector<bool>& values);
  // Any value type with any bytes.
  void set_raw(std::string_view key, uint32_t type, const Bytes& value);
  // Appends without looking for an earlier pair of that key.
  void append_raw(std::string_view key, uint32_t type, const Bytes& value);
  void erase(std::string_view key);

  // Data of the size that type and dims ask for, all `fill`, placed behind the tensors before it.
  void add_tensor(std::string_view name, const std::vector<uint64_t>& dims, GgmlType type, uint8_t fill = 0);
  void add_tensor(std::string_view name, const std::vector<uint64_t>& dims, GgmlType type, const Bytes& data);
  void erase_tensor(std::string_view name);

  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type = 0;
    Bytes data;
    bool has_offset = false;  // otherwise the offset follows from the order
    uint64_t offset = 0;
  };
  // For entries that no right file has.
  std::vector<Tensor>& tensors() { return tensors_; }

  void set_version(uint32_t version) { version_ = version; }
  void set_alignment(uint32_t alignment);  // also the key general.alignment

  // The file. `header_bytes` gets the size of everything before the data section.
  Bytes bytes(uint64_t* header_bytes = nullptr) const;

 private:
  struct Pair {
    std::string key;
    uint32_t type;
    Bytes value;
  };
  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  std::vector<Pair> pairs_;
  std::vector<Tensor> tensors_;
};

// Bytes of a little-endian number.
template <typename T>
void put(GgufWriter::Bytes* out, T value) {
  const auto* data = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), data, data + sizeof value);
}
void put_string(GgufWriter::Bytes* out, std::string_view text);

}  // namespace omnibus::fakes
