#include "fakes/gguf_writer.h"

#include <algorithm>

namespace omnibus::fakes {
namespace {

template <typename T>
GgufWriter::Bytes number(T value) {
  GgufWriter::Bytes out;
  put(&out, value);
  return out;
}

GgufWriter::Bytes array_head(uint32_t type, uint64_t count) {
  GgufWriter::Bytes out;
  put(&out, type);
  put(&out, count);
  return out;
}

template <typename T>
GgufWriter::Bytes numbers(uint32_t type, const std::vector<T>& values) {
  GgufWriter::Bytes out = array_head(type, values.size());
  for (const T value : values) put(&out, value);
  return out;
}

void pad(GgufWriter::Bytes* out, uint64_t alignment) {
  while (out->size() % alignment != 0) out->push_back(0);
}

}  // namespace

void put_string(GgufWriter::Bytes* out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out->insert(out->end(), text.begin(), text.end());
}

void GgufWriter::set_u8(std::string_view key, uint8_t value) { set_raw(key, 0, number(value)); }
void GgufWriter::set_i8(std::string_view key, int8_t value) { set_raw(key, 1, number(value)); }
void GgufWriter::set_u16(std::string_view key, uint16_t value) { set_raw(key, 2, number(value)); }
void GgufWriter::set_i16(std::string_view key, int16_t value) { set_raw(key, 3, number(value)); }
void GgufWriter::set_u32(std::string_view key, uint32_t value) { set_raw(key, 4, number(value)); }
void GgufWriter::set_i32(std::string_view key, int32_t value) { set_raw(key, 5, number(value)); }
void GgufWriter::set_f32(std::string_view key, float value) { set_raw(key, 6, number(value)); }
void GgufWriter::set_bool(std::string_view key, bool value) {
  set_raw(key, 7, {static_cast<uint8_t>(value)});
}
void GgufWriter::set_u64(std::string_view key, uint64_t value) { set_raw(key, 10, number(value)); }
void GgufWriter::set_i64(std::string_view key, int64_t value) { set_raw(key, 11, number(value)); }
void GgufWriter::set_f64(std::string_view key, double value) { set_raw(key, 12, number(value)); }

void GgufWriter::set_string(std::string_view key, std::string_view value) {
  Bytes out;
  put_string(&out, value);
  set_raw(key, 8, out);
}

void GgufWriter::set_strings(std::string_view key, const std::vector<std::string>& values) {
  Bytes out = array_head(8, values.size());
  for (const std::string& value : values) put_string(&out, value);
  set_raw(key, 9, out);
}

void GgufWriter::set_i32s(std::string_view key, const std::vector<int32_t>& values) {
  set_raw(key, 9, numbers(5, values));
}
void GgufWriter::set_u8s(std::string_view key, const std::vector<uint8_t>& values) {
  set_raw(key, 9, numbers(0, values));
}
void GgufWriter::set_f32s(std::string_view key, const std::vector<float>& values) {
  set_raw(key, 9, numbers(6, values));
}

void GgufWriter::set_bools(std::string_view key, const std::vector<bool>& values) {
  Bytes out = array_head(7, values.size());
  for (const bool value : values) out.push_back(static_cast<uint8_t>(value));
  set_raw(key, 9, out);
}

void GgufWriter::set_raw(std::string_view key, uint32_t type, const Bytes& value) {
  for (Pair& pair : pairs_) {
    if (pair.key != key) continue;
    pair.type = type;
    pair.value = value;
    return;
  }
  append_raw(key, type, value);
}

void GgufWriter::append_raw(std::string_view key, uint32_t type, const Bytes& value) {
  pairs_.push_back({std::string(key), type, value});
}

void GgufWriter::erase(std::string_view key) {
  std::erase_if(pairs_, [&](const Pair& pair) { return pair.key == key; });
}

void GgufWriter::add_tensor(std::string_view name, const std::vector<uint64_t>& dims, GgmlType type,
                            uint8_t fill) {
  const GgmlTypeTraits* traits = ggml_type_traits(static_cast<uint32_t>(type));
  uint64_t elements = 1;
  for (const uint64_t dim : dims) elements *= dim;
  add_tensor(name, dims, type, Bytes(elements / traits->block_elements * traits->block_bytes, fill));
}

void GgufWriter::add_tensor(std::string_view name, const std::vector<uint64_t>& dims, GgmlType type,
                            const Bytes& data) {
  Tensor tensor;
  tensor.name = name;
  tensor.dims = dims;
  tensor.type = static_cast<uint32_t>(type);
  tensor.data = data;
  tensors_.push_back(std::move(tensor));
}

void GgufWriter::erase_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
}

void GgufWriter::set_alignment(uint32_t alignment) {
  alignment_ = alignment;
  set_u32("general.alignment", alignment);
}

GgufWriter::Bytes GgufWriter::bytes(uint64_t* header_bytes) const {
  Bytes out = {'G', 'G', 'U', 'F'};
  put(&out, version_);
  put(&out, static_cast<uint64_t>(tensors_.size()));
  put(&out, static_cast<uint64_t>(pairs_.size()));
  for (const Pair& pair : pairs_) {
    put_string(&out, pair.key);
    put(&out, pair.type);
    out.insert(out.end(), pair.value.begin(), pair.value.end());
  }
  uint64_t next = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(&out, tensor.name);
    put(&out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(&out, dim);
    put(&out, tensor.type);
    put(&out, tensor.has_offset ? tensor.offset : next);
    next = (next + tensor.data.size() + alignment_ - 1) / alignment_ * alignment_;
  }
  if (header_bytes != nullptr) *header_bytes = out.size();
  for (const Tensor& tensor : tensors_) {
    pad(&out, alignment_);
    out.insert(out.end(), tensor.data.begin(), tensor.data.end());
  }
  return out;
}

}  // namespace omnibus::fakes
