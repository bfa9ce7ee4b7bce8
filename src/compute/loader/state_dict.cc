#include "omnibus/compute/loader/state_dict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace omnibus {

StateDict::StateDict(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

bool StateDict::has(std::string_view name) const { return file_->find_tensor(name) != nullptr; }

StatusOr<TensorView> StateDict::matrix(std::string_view name, int64_t rows, int64_t columns) {
  const GgufTensorInfo* info = file_->find_tensor(name);
  if (info == nullptr)
    return absl::NotFoundError(fmt::format("{}: tensor '{}' is missing", file_->label(), name));
  const auto dim = [&](size_t i) { return i < info->dims.size() ? info->dims[i] : 1; };
  if (dim(0) != columns || dim(1) != rows || dim(2) != 1 || dim(3) != 1)
    return absl::InvalidArgumentError(fmt::format("{}: tensor '{}' has the shape [{}], expected [{}, {}]",
                                                  file_->label(), name, fmt::join(info->dims, ", "), columns,
                                                  rows));
  claimed_.insert(info);
  return TensorView{info, file_->tensor_data(*info), rows, columns};
}

StatusOr<TensorView> StateDict::vector(std::string_view name, int64_t elements) {
  return matrix(name, 1, elements);
}

void StateDict::skip(std::string_view prefix) {
  for (const GgufTensorInfo& info : file_->tensors())
    if (std::string_view(info.name).starts_with(prefix)) claimed_.insert(&info);
}

Status StateDict::check_all_claimed() const {
  const GgufTensorInfo* first = nullptr;
  size_t count = 0;
  for (const GgufTensorInfo& info : file_->tensors()) {
    if (claimed_.contains(&info)) continue;
    if (first == nullptr) first = &info;
    ++count;
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{}: tensor '{}' has no place in this architecture ({} such tensors): running the model without "
      "it would be another model",
      file_->label(), first->name, count));
}

int64_t StateDict::total_bytes() const {
  int64_t sum = 0;
  for (const GgufTensorInfo& info : file_->tensors()) sum += static_cast<int64_t>(info.bytes);
  return sum;
}

}  // namespace omnibus
