#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "omnibus/base/common/check.h"
#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/load_guard.h"

#include "file_mapping.h"
#include "gguf_parser.h"
#include "quoted.h"

namespace omnibus {
namespace {

using model_files::FileMapping;
using model_files::GgufContents;
using model_files::GgufParser;
using model_files::quoted;

// Bytes handed to parse(), kept with the alignment that a mapping would have.
class OwnedBytes {
 public:
  explicit OwnedBytes(std::span<const uint8_t> bytes) : size_(bytes.size()) {
    data_ = static_cast<uint8_t*>(::operator new(std::max<size_t>(size_, 1), kAlign));
    if (size_ > 0) std::memcpy(data_, bytes.data(), size_);
  }
  ~OwnedBytes() { ::operator delete(data_, kAlign); }
  OwnedBytes(const OwnedBytes&) = delete;
  OwnedBytes& operator=(const OwnedBytes&) = delete;
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  static constexpr std::align_val_t kAlign{64};
  uint8_t* data_;
  size_t size_;
};

class GgufFileImpl final : public GgufFile {
 public:
  GgufFileImpl(std::string label, std::unique_ptr<FileMapping> mapping, std::unique_ptr<OwnedBytes> owned)
      : label_(std::move(label)), mapping_(std::move(mapping)), owned_(std::move(owned)) {
    bytes_ = mapping_ ? mapping_->bytes() : owned_->bytes();
  }

  Status parse() {
    GgufParser parser(bytes_, label_, [this](uint64_t begin, uint64_t end) {
      if (mapping_) mapping_->release(begin, end);
    });
    OMNIBUS_ASSIGN_OR_RETURN(contents_, parser.parse());
    return absl::OkStatus();
  }

  const std::map<std::string, GgufValue, std::less<>>& metadata() const override {
    return contents_.metadata;
  }
  std::span<const GgufTensorInfo> tensors() const override { return contents_.tensors; }
  const GgufTensorInfo* find_tensor(std::string_view name) const override {
    const auto& order = contents_.by_name;
    const auto found =
        std::lower_bound(order.begin(), order.end(), name,
                         [&](uint32_t i, std::string_view n) { return contents_.tensors[i].name < n; });
    if (found == order.end() || contents_.tensors[*found].name != name) return nullptr;
    return &contents_.tensors[*found];
  }
  std::span<const uint8_t> tensor_data(const GgufTensorInfo& tensor) const override {
    OMNIBUS_CHECK(
        &tensor >= contents_.tensors.data() && &tensor < contents_.tensors.data() + contents_.tensors.size(),
        "a tensor of this file");
    // With nothing but empty tensors the data section may begin beyond the end of the file.
    if (tensor.bytes == 0) return {};
    return bytes_.subspan(contents_.data_begin + tensor.offset, tensor.bytes);
  }
  uint64_t file_bytes() const override { return bytes_.size(); }
  std::span<const uint8_t> mapping() const override { return bytes_; }
  uint32_t version() const override { return contents_.version; }
  const std::string& label() const override { return label_; }
  void release_pages(const GgufTensorInfo& tensor) const override {
    const uint64_t begin = contents_.data_begin + tensor.offset;
    if (mapping_) mapping_->release(begin, begin + tensor.bytes);
  }

 private:
  std::string label_;
  std::unique_ptr<FileMapping> mapping_;
  std::unique_ptr<OwnedBytes> owned_;
  std::span<const uint8_t> bytes_;
  GgufContents contents_;
};

const char* kind_of(const GgufValue& value) {
  static constexpr const char* kKinds[] = {"an integer",
                                           "an integer",
                                           "a float",
                                           "a boolean",
                                           "a string",
                                           "an array of integers",
                                           "an array of floats",
                                           "an array of booleans",
                                           "an array of strings"};
  return kKinds[value.index()];
}

Status wrong_kind(const GgufFile& file, std::string_view key, const GgufValue& value, const char* wanted) {
  return absl::InvalidArgumentError(
      fmt::format("{}: key {} must be {}, but is {}", file.label(), quoted(key), wanted, kind_of(value)));
}

StatusOr<const GgufValue*> find_value(const GgufFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    return absl::NotFoundError(fmt::format("{}: key {} is missing", file.label(), quoted(key)));
  }
  return &found->second;
}

}  // namespace

StatusOr<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  OMNIBUS_ASSIGN_OR_RETURN(std::unique_ptr<FileMapping> mapping, FileMapping::open(path));
  auto file = std::make_shared<GgufFileImpl>(path, std::move(mapping), nullptr);
  const LoadGuard guard(file);
  OMNIBUS_RETURN_IF_ERROR(file->parse());
  return std::shared_ptr<const GgufFile>(std::move(file));
}

StatusOr<std::shared_ptr<const GgufFile>> GgufFile::parse(std::span<const uint8_t> bytes,
                                                          std::string_view label) {
  auto file =
      std::make_shared<GgufFileImpl>(std::string(label), nullptr, std::make_unique<OwnedBytes>(bytes));
  OMNIBUS_RETURN_IF_ERROR(file->parse());
  return std::shared_ptr<const GgufFile>(std::move(file));
}

StatusOr<int64_t> GgufFile::get_int(std::string_view key) const {
  OMNIBUS_ASSIGN_OR_RETURN(const GgufValue* value, find_value(*this, key));
  if (const auto* i = std::get_if<int64_t>(value)) return *i;
  if (const auto* u = std::get_if<uint64_t>(value)) {
    if (*u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(*u);
    return absl::InvalidArgumentError(
        fmt::format("{}: key {} is out of range: {}", label(), quoted(key), *u));
  }
  return wrong_kind(*this, key, *value, "an integer");
}

StatusOr<double> GgufFile::get_float(std::string_view key) const {
  OMNIBUS_ASSIGN_OR_RETURN(const GgufValue* value, find_value(*this, key));
  if (const auto* f = std::get_if<double>(value)) return *f;
  constexpr uint64_t kExact = uint64_t{1} << 53;
  const auto* i = std::get_if<int64_t>(value);
  const auto* u = std::get_if<uint64_t>(value);
  if (i == nullptr && u == nullptr) return wrong_kind(*this, key, *value, "a float");
  const uint64_t magnitude = u != nullptr ? *u
                             : *i < 0     ? uint64_t{0} - static_cast<uint64_t>(*i)
                                          : static_cast<uint64_t>(*i);
  if (magnitude > kExact) {
    return absl::InvalidArgumentError(
        fmt::format("{}: key {}: the integer is too large for a float", label(), quoted(key)));
  }
  return u != nullptr ? static_cast<double>(*u) : static_cast<double>(*i);
}

StatusOr<bool> GgufFile::get_bool(std::string_view key) const {
  OMNIBUS_ASSIGN_OR_RETURN(const GgufValue* value, find_value(*this, key));
  if (const auto* b = std::get_if<bool>(value)) return *b;
  return wrong_kind(*this, key, *value, "a boolean");
}

StatusOr<std::string> GgufFile::get_string(std::string_view key) const {
  OMNIBUS_ASSIGN_OR_RETURN(const GgufValue* value, find_value(*this, key));
  if (const auto* s = std::get_if<std::string_view>(value)) return std::string(*s);
  return wrong_kind(*this, key, *value, "a string");
}

}  // namespace omnibus
