// GGUF container (versions 2 and 3, little-endian): metadata and tensor directory, validated before anything
// is allocated. Format: ggml docs/gguf.md. Tensor data is mapped, never interpreted here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "omnibus/base/common/status.h"

namespace omnibus {

// ggml tensor type ids as they stand in files.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kBF16 = 30,
};

struct GgmlTypeTraits {
  const char* name;        // "Q4_1"
  int32_t block_elements;  // 32
  int32_t block_bytes;     // 20
};
// nullptr for an id that omnibus cannot read.
const GgmlTypeTraits* ggml_type_traits(uint32_t type_id);
// Name for error messages, for any id ("IQ2_XS", "type 77").
std::string ggml_type_name(uint32_t type_id);

// Scalars keep their kind; integers of any width become int64/uint64, floats double. Arrays are typed vectors
// (strings as views into the mapping, valid as long as the GgufFile).
using GgufValue = std::variant<int64_t, uint64_t, double, bool, std::string_view, std::vector<int64_t>,
                               std::vector<double>, std::vector<bool>, std::vector<std::string_view>>;

struct GgufTensorInfo {
  std::string name;
  GgmlType type = GgmlType::kF32;
  std::vector<int64_t> dims;  // ne[]: dims[0] is contiguous; 1..4 entries
  uint64_t offset = 0;        // from the data section's start
  uint64_t bytes = 0;
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
};

// Immutable after open; any thread.
class GgufFile {
 public:
  // Errors name the path, the key or tensor, and the byte offset. `bytes` form: for tests and fuzzing.
  static StatusOr<std::shared_ptr<const GgufFile>> open(const std::string& path);
  static StatusOr<std::shared_ptr<const GgufFile>> parse(std::span<const uint8_t> bytes,
                                                         std::string_view label);

  virtual ~GgufFile() = default;
  virtual const std::map<std::string, GgufValue, std::less<>>& metadata() const = 0;
  virtual std::span<const GgufTensorInfo> tensors() const = 0;
  virtual const GgufTensorInfo* find_tensor(std::string_view name) const = 0;
  // The tensor's bytes in the mapping.
  virtual std::span<const uint8_t> tensor_data(const GgufTensorInfo& tensor) const = 0;
  virtual uint64_t file_bytes() const = 0;
  // The whole file as mapped.
  virtual std::span<const uint8_t> mapping() const = 0;
  virtual uint32_t version() const = 0;
  // The path given to open(), or the label given to parse(): the head of every error message.
  virtual const std::string& label() const = 0;
  // Gives the pages of one tensor back to the system once it is packed (a hint).
  virtual void release_pages(const GgufTensorInfo& tensor) const = 0;

  // Typed access. Missing: NOT_FOUND; wrong kind: INVALID_ARGUMENT; both name the key. Any integer width is
  // accepted for an integer, any number for a float where exact.
  StatusOr<int64_t> get_int(std::string_view key) const;
  StatusOr<double> get_float(std::string_view key) const;
  StatusOr<bool> get_bool(std::string_view key) const;
  StatusOr<std::string> get_string(std::string_view key) const;
  bool has(std::string_view key) const { return metadata().find(key) != metadata().end(); }
};

}  // namespace omnibus
