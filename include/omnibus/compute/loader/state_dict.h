// StateDict: the tensors of a model file by name. Views into the mapping; each is claimed by whoever loads
// it, so that a tensor that nobody wants, or that nobody finds, is an error with its name.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

// A matrix as it lies in the file: row r at data + r * row_bytes().
struct TensorView {
  const GgufTensorInfo* info = nullptr;
  std::span<const uint8_t> data;
  int64_t rows = 0, columns = 0;
  int64_t row_bytes() const { return rows == 0 ? 0 : static_cast<int64_t>(data.size()) / rows; }
};

// One thread.
class StateDict {
 public:
  explicit StateDict(std::shared_ptr<const GgufFile> file);

  bool has(std::string_view name) const;
  // Claim a tensor of exactly this shape. NOT_FOUND and INVALID_ARGUMENT name the file, the tensor and both
  // shapes.
  StatusOr<TensorView> matrix(std::string_view name, int64_t rows, int64_t columns);
  StatusOr<TensorView> vector(std::string_view name, int64_t elements);
  // Claims everything whose name begins with `prefix`: tensors of other pipeline stages.
  void skip(std::string_view prefix);
  // INVALID_ARGUMENT names the first tensor that nobody claimed, and how many there are.
  Status check_all_claimed() const;

  const GgufFile& file() const { return *file_; }
  int64_t total_bytes() const;  // of all tensors

 private:
  std::shared_ptr<const GgufFile> file_;
  std::set<const GgufTensorInfo*> claimed_;
};

}  // namespace omnibus
