// The tensor directory: shapes, sizes, places in the data section.
#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "gguf_parser.h"
#include "quoted.h"

namespace omnibus::model_files {
namespace {

// What one tensor occupies: the struct, heap blocks for name and shape, its entries in the lists of places,
// names and offsets.
constexpr uint64_t kTensorBytes = sizeof(GgufTensorInfo) + 64 + 48 + 16;

}  // namespace

Status GgufParser::read_tensors(uint64_t count, uint64_t alignment) {
  // Reserved within the budget, because a growing vector would hold everything twice for a moment.
  const uint64_t room = std::min(count, kDecodedBudget / kTensorBytes);
  contents_.tensors.reserve(room);
  tensor_places_.reserve(room);
  for (uint64_t i = 0; i < count; ++i) OMNIBUS_RETURN_IF_ERROR(read_tensor(i, alignment));
  return absl::OkStatus();
}

Status GgufParser::read_tensor(uint64_t index, uint64_t alignment) {
  const uint64_t place = reader_.position();
  std::string_view name;
  const std::string number = fmt::format("tensor {}", index);
  OMNIBUS_RETURN_IF_ERROR(charge(number, kTensorBytes));
  OMNIBUS_RETURN_IF_ERROR(read_string(number, kMaxTensorNameBytes, &name));
  if (name.empty()) return fail(number, place, "the name is empty");
  const std::string what = "tensor " + quoted(name);
  GgufTensorInfo tensor;
  tensor.name = name;
  OMNIBUS_RETURN_IF_ERROR(read_shape(what, &tensor));
  uint32_t type = 0;
  const uint64_t type_place = reader_.position();
  if (!reader_.read(&type)) return cut(what, "type");
  if (ggml_type_traits(type) == nullptr) {
    return absl::UnimplementedError(
        fmt::format("{}: {} at byte {}: {} is not a tensor type that omnibus reads", label_, what, type_place,
                    ggml_type_name(type)));
  }
  tensor.type = static_cast<GgmlType>(type);
  if (!reader_.read(&tensor.offset)) return cut(what, "offset");
  OMNIBUS_RETURN_IF_ERROR(size_tensor(what, place, &tensor));
  if (tensor.offset % alignment != 0) {
    return fail(what, place, fmt::format("offset {} is not a multiple of {}", tensor.offset, alignment));
  }
  contents_.tensors.push_back(std::move(tensor));
  tensor_places_.push_back(place);
  return absl::OkStatus();
}

Status GgufParser::read_shape(std::string_view what, GgufTensorInfo* tensor) {
  uint32_t n_dims = 0;
  const uint64_t place = reader_.position();
  if (!reader_.read(&n_dims)) return cut(what, "shape");
  if (n_dims > 4) return fail(what, place, fmt::format("{} dimensions (limit 4)", n_dims));
  for (uint32_t i = 0; i < n_dims; ++i) {
    uint64_t dim = 0;
    if (!reader_.read(&dim)) return cut(what, "shape");
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail(what, reader_.position() - 8, fmt::format("dimension {} is out of range: {}", i, dim));
    }
    tensor->dims.push_back(static_cast<int64_t>(dim));
  }
  if (n_dims == 0) tensor->dims.push_back(1);  // a scalar
  return absl::OkStatus();
}

Status GgufParser::size_tensor(std::string_view what, uint64_t offset, GgufTensorInfo* tensor) const {
  const GgmlTypeTraits& traits = *ggml_type_traits(static_cast<uint32_t>(tensor->type));
  int64_t elements = 1;
  for (const int64_t dim : tensor->dims) {
    if (__builtin_mul_overflow(elements, dim, &elements)) {
      return fail(what, offset, "the number of elements overflows");
    }
  }
  if (tensor->dims[0] % traits.block_elements != 0) {
    return fail(what, offset,
                fmt::format("rows of {} elements are not whole blocks of {} ({})", tensor->dims[0],
                            traits.block_elements, traits.name));
  }
  if (__builtin_mul_overflow(static_cast<uint64_t>(elements / traits.block_elements),
                             static_cast<uint64_t>(traits.block_bytes), &tensor->bytes)) {
    return fail(what, offset, "the number of bytes overflows");
  }
  return absl::OkStatus();
}

Status GgufParser::check_names() {
  const std::vector<GgufTensorInfo>& tensors = contents_.tensors;
  std::vector<uint32_t>& order = contents_.by_name;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int sign = tensors[a].name.compare(tensors[b].name);
    return sign != 0 ? sign < 0 : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensorInfo& tensor = tensors[order[i]];
    if (tensor.name != tensors[order[i - 1]].name) continue;
    return fail("tensor " + quoted(tensor.name), tensor_places_[order[i]], "the name occurs twice");
  }
  return absl::OkStatus();
}

Status GgufParser::check_data(uint64_t alignment) {
  const std::vector<GgufTensorInfo>& tensors = contents_.tensors;
  if (tensors.empty()) return absl::OkStatus();
  const uint64_t end_of_header = reader_.position();
  const uint64_t padding = (alignment - end_of_header % alignment) % alignment;
  const uint64_t room = reader_.remaining() > padding ? reader_.remaining() - padding : 0;
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return tensors[a].offset != tensors[b].offset ? tensors[a].offset < tensors[b].offset : a < b;
  });
  const GgufTensorInfo* previous = nullptr;
  for (const uint32_t i : order) {
    const GgufTensorInfo& tensor = tensors[i];
    if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
      return fail("tensor " + quoted(tensor.name), tensor_places_[i],
                  fmt::format("its {} bytes at offset {} end beyond the data section of {} bytes (file cut "
                              "short?)",
                              tensor.bytes, tensor.offset, room));
    }
    if (tensor.bytes == 0) continue;
    if (previous != nullptr && tensor.offset - previous->offset < previous->bytes) {
      return fail("tensor " + quoted(tensor.name), tensor_places_[i],
                  fmt::format("its data overlaps that of tensor {}", quoted(previous->name)));
    }
    previous = &tensor;
  }
  contents_.data_begin = end_of_header + padding;
  return absl::OkStatus();
}

}  // namespace omnibus::model_files
