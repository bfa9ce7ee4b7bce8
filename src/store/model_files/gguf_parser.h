// Walks the metadata and tensor directory of a GGUF file; every length is checked against the bytes that
// remain and against a budget before anything is allocated.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/store/model_files/gguf.h"

#include "byte_reader.h"

namespace omnibus::model_files {

// Limits beyond the format's own. kDecodedBudget bounds what the decoded metadata may occupy: four times what
// the largest vocabularies in use need, and little enough for a hostile file.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr uint64_t kMaxStringBytes = 64 << 20;
inline constexpr uint64_t kMaxTensors = 1'000'000;
inline constexpr uint64_t kMaxKeys = 65'536;
inline constexpr uint64_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxTensorNameBytes = 63;
inline constexpr uint64_t kDecodedBudget = 40 << 20;
inline constexpr uint64_t kDefaultAlignment = 32;

struct GgufContents {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensorInfo> tensors;
  std::vector<uint32_t> by_name;  // indexes of tensors, sorted by name
  uint64_t data_begin = 0;        // file offset of the data section
};

class GgufParser {
 public:
  GgufParser(std::span<const uint8_t> bytes, std::string_view label, ByteReader::PassedFn passed);
  // The whole file, checked. Views in the result point into `bytes`.
  StatusOr<GgufContents> parse();

 private:
  // What is being read, for messages: "key 'a.b'", "tensor 'x'", "key 17".
  Status fail(std::string_view what, uint64_t offset, std::string_view message) const;
  Status cut(std::string_view what, std::string_view part) const;
  Status charge(std::string_view what, uint64_t bytes);

  Status read_header(uint64_t* tensor_count, uint64_t* key_count);
  Status read_string(std::string_view what, uint64_t limit, std::string_view* text);
  Status read_pair(uint64_t index);
  Status read_scalar(std::string_view what, uint32_t type, GgufValue* value);
  Status read_array(std::string_view what, GgufValue* value);
  Status read_elements(std::string_view what, uint32_t type, uint64_t count, GgufValue* value);
  template <typename T>
  Status read_integers(std::string_view what, uint64_t count, GgufValue* value);
  template <typename T>
  Status read_floats(std::string_view what, uint64_t count, GgufValue* value);
  Status read_bools(std::string_view what, uint64_t count, GgufValue* value);
  Status read_strings(std::string_view what, uint64_t count, GgufValue* value);

  Status check_split() const;
  Status read_alignment(uint64_t* alignment) const;
  Status read_tensors(uint64_t count, uint64_t alignment);
  Status read_tensor(uint64_t index, uint64_t alignment);
  Status read_shape(std::string_view what, GgufTensorInfo* tensor);
  Status size_tensor(std::string_view what, uint64_t offset, GgufTensorInfo* tensor) const;
  Status check_names();
  Status check_data(uint64_t alignment);

  std::span<const uint8_t> bytes_;
  std::string label_;
  ByteReader reader_;
  uint64_t decoded_ = 0;
  std::vector<uint64_t> tensor_places_;  // file offset of each tensor's entry
  GgufContents contents_;
};

}  // namespace omnibus::model_files
