#include "gguf_parser.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "quoted.h"

namespace omnibus::model_files {
namespace {

enum ValueType : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// Bytes that one element takes at least; 0 for an unknown or nested type.
uint64_t element_bytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kString:
    case kU64:
    case kI64:
    case kF64:
      return 8;
    default:
      return 0;
  }
}

// What the first bytes are instead of a GGUF header, where it can be told.
std::string describe_magic(std::string_view magic, std::string_view start) {
  if (magic == "FUGG") return "its bytes are swapped (a file of the other endianness)";
  if (magic == "ggml" || magic == "ggjt" || magic == "ggmf" || magic == "lmgg" || magic == "tjgg") {
    return "it is an old GGML file: convert it to GGUF";
  }
  if (start.starts_with("version https://git-lfs")) return "it is a Git LFS pointer, not the model itself";
  return fmt::format("it begins with {}", quoted(magic));
}

}  // namespace

GgufParser::GgufParser(std::span<const uint8_t> bytes, std::string_view label, ByteReader::PassedFn passed)
    : bytes_(bytes), label_(label), reader_(bytes, std::move(passed)) {}

Status GgufParser::fail(std::string_view what, uint64_t offset, std::string_view message) const {
  return absl::InvalidArgumentError(fmt::format("{}: {} at byte {}: {}", label_, what, offset, message));
}

Status GgufParser::cut(std::string_view what, std::string_view part) const {
  return fail(what, reader_.position(),
              fmt::format("the file ends within its {} ({} bytes remain)", part, reader_.remaining()));
}

Status GgufParser::charge(std::string_view what, uint64_t bytes) {
  decoded_ += bytes;
  if (decoded_ > kDecodedBudget || reader_.position() > kMaxHeaderBytes) {
    return fail(what, reader_.position(),
                fmt::format("the metadata is larger than omnibus accepts ({} MiB decoded, {} MB in the file)",
                            kDecodedBudget >> 20, kMaxHeaderBytes / 1'000'000));
  }
  return absl::OkStatus();
}

StatusOr<GgufContents> GgufParser::parse() {
  uint64_t tensor_count = 0;
  uint64_t key_count = 0;
  OMNIBUS_RETURN_IF_ERROR(read_header(&tensor_count, &key_count));
  for (uint64_t i = 0; i < key_count; ++i) OMNIBUS_RETURN_IF_ERROR(read_pair(i));
  OMNIBUS_RETURN_IF_ERROR(check_split());
  uint64_t alignment = 0;
  OMNIBUS_RETURN_IF_ERROR(read_alignment(&alignment));
  OMNIBUS_RETURN_IF_ERROR(read_tensors(tensor_count, alignment));
  OMNIBUS_RETURN_IF_ERROR(check_names());
  OMNIBUS_RETURN_IF_ERROR(check_data(alignment));
  return std::move(contents_);
}

Status GgufParser::read_header(uint64_t* tensor_count, uint64_t* key_count) {
  constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;        // length, one character, type, one byte
  constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // length, one character, n_dims, type, offset
  const uint8_t* data = nullptr;
  if (!reader_.take(4, &data)) return cut("header", "magic");
  const std::string_view magic(reinterpret_cast<const char*>(data), 4);
  if (magic != "GGUF") {
    const std::string_view start(magic.data(), std::min<size_t>(bytes_.size(), 32));
    return fail("header", 0, fmt::format("not a GGUF file: {}", describe_magic(magic, start)));
  }
  uint32_t& version = contents_.version;
  if (!reader_.read(&version)) return cut("header", "version");
  if (version != 0 && (version & 0xffff) == 0) {
    return fail("header", 4, "the file is of the other endianness (big-endian); only little-endian is read");
  }
  if (version != 2 && version != 3) {
    return fail("header", 4, fmt::format("GGUF version {} is not supported (2 and 3 are)", version));
  }
  if (!reader_.read(tensor_count) || !reader_.read(key_count)) return cut("header", "counts");
  if (*tensor_count > kMaxTensors || *tensor_count > reader_.remaining() / kMinTensorBytes) {
    return fail("header", 8,
                fmt::format("{} tensors cannot be in a file of {} bytes (limit {})", *tensor_count,
                            bytes_.size(), kMaxTensors));
  }
  if (*key_count > kMaxKeys || *key_count > reader_.remaining() / kMinPairBytes) {
    return fail("header", 16,
                fmt::format("{} metadata keys cannot be in a file of {} bytes (limit {})", *key_count,
                            bytes_.size(), kMaxKeys));
  }
  return absl::OkStatus();
}

Status GgufParser::read_string(std::string_view what, uint64_t limit, std::string_view* text) {
  const uint64_t place = reader_.position();
  uint64_t length = 0;
  if (!reader_.read(&length)) return cut(what, "string length");
  if (length > limit) {
    return fail(what, place, fmt::format("a string of {} bytes (limit {})", length, limit));
  }
  const uint8_t* data = nullptr;
  if (!reader_.take(length, &data)) {
    return fail(what, place,
                fmt::format("a string of {} bytes, but only {} bytes remain", length, reader_.remaining()));
  }
  *text = {reinterpret_cast<const char*>(data), length};
  return absl::OkStatus();
}

Status GgufParser::read_pair(uint64_t index) {
  constexpr uint64_t kNodeBytes = 160;  // a map node with its key's string and value
  const uint64_t place = reader_.position();
  std::string_view key;
  const std::string number = fmt::format("key {}", index);
  OMNIBUS_RETURN_IF_ERROR(read_string(number, kMaxKeyBytes, &key));
  if (key.empty()) return fail(number, place, "the key is empty");
  const std::string what = "key " + quoted(key);
  if (contents_.metadata.contains(key)) return fail(what, place, "the key occurs twice");
  OMNIBUS_RETURN_IF_ERROR(charge(what, kNodeBytes + key.size()));
  uint32_t type = 0;
  if (!reader_.read(&type)) return cut(what, "value type");
  GgufValue value;
  if (type == kArray) {
    OMNIBUS_RETURN_IF_ERROR(read_array(what, &value));
  } else {
    OMNIBUS_RETURN_IF_ERROR(read_scalar(what, type, &value));
  }
  contents_.metadata.emplace(std::string(key), std::move(value));
  return absl::OkStatus();
}

Status GgufParser::read_scalar(std::string_view what, uint32_t type, GgufValue* value) {
  const uint64_t place = reader_.position();
  const auto number = [&]<typename Stored, typename Kept>(Stored stored, Kept) -> Status {
    if (!reader_.read(&stored)) return cut(what, "value");
    *value = static_cast<Kept>(stored);
    return absl::OkStatus();
  };
  switch (type) {
    case kU8:
      return number(uint8_t{}, uint64_t{});
    case kU16:
      return number(uint16_t{}, uint64_t{});
    case kU32:
      return number(uint32_t{}, uint64_t{});
    case kU64:
      return number(uint64_t{}, uint64_t{});
    case kI8:
      return number(int8_t{}, int64_t{});
    case kI16:
      return number(int16_t{}, int64_t{});
    case kI32:
      return number(int32_t{}, int64_t{});
    case kI64:
      return number(int64_t{}, int64_t{});
    case kF32:
      return number(float{}, double{});
    case kF64:
      return number(double{}, double{});
    case kBool: {
      uint8_t byte = 0;
      if (!reader_.read(&byte)) return cut(what, "value");
      if (byte > 1) return fail(what, place, fmt::format("a boolean holds {}, not 0 or 1", byte));
      *value = byte == 1;
      return absl::OkStatus();
    }
    case kString: {
      std::string_view text;
      OMNIBUS_RETURN_IF_ERROR(read_string(what, kMaxStringBytes, &text));
      *value = text;
      return absl::OkStatus();
    }
    default:
      return fail(what, place - 4, fmt::format("unknown value type {}", type));
  }
}

Status GgufParser::read_array(std::string_view what, GgufValue* value) {
  const uint64_t place = reader_.position();
  uint32_t type = 0;
  uint64_t count = 0;
  if (!reader_.read(&type) || !reader_.read(&count)) return cut(what, "array header");
  if (type == kArray) return fail(what, place, "nested arrays are not supported");
  const uint64_t each = element_bytes(type);
  if (each == 0) return fail(what, place, fmt::format("unknown element type {} of an array", type));
  if (count > reader_.remaining() / each) {
    return fail(what, place + 4,
                fmt::format("an array of {} elements, but only {} bytes remain", count, reader_.remaining()));
  }
  return read_elements(what, type, count, value);
}

Status GgufParser::read_elements(std::string_view what, uint32_t type, uint64_t count, GgufValue* value) {
  switch (type) {
    case kU8:
      return read_integers<uint8_t>(what, count, value);
    case kI8:
      return read_integers<int8_t>(what, count, value);
    case kU16:
      return read_integers<uint16_t>(what, count, value);
    case kI16:
      return read_integers<int16_t>(what, count, value);
    case kU32:
      return read_integers<uint32_t>(what, count, value);
    case kI32:
      return read_integers<int32_t>(what, count, value);
    case kU64:
      return read_integers<uint64_t>(what, count, value);
    case kI64:
      return read_integers<int64_t>(what, count, value);
    case kF32:
      return read_floats<float>(what, count, value);
    case kF64:
      return read_floats<double>(what, count, value);
    case kBool:
      return read_bools(what, count, value);
    default:
      return read_strings(what, count, value);
  }
}

template <typename T>
Status GgufParser::read_integers(std::string_view what, uint64_t count, GgufValue* value) {
  OMNIBUS_RETURN_IF_ERROR(charge(what, count * sizeof(int64_t)));
  std::vector<int64_t> out(count);
  for (int64_t& element : out) {
    T stored{};
    if (!reader_.read(&stored)) return cut(what, "array");
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (stored > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return fail(what, reader_.position() - sizeof(T), fmt::format("{} is out of range", stored));
      }
    }
    element = static_cast<int64_t>(stored);
  }
  *value = std::move(out);
  return absl::OkStatus();
}

template <typename T>
Status GgufParser::read_floats(std::string_view what, uint64_t count, GgufValue* value) {
  OMNIBUS_RETURN_IF_ERROR(charge(what, count * sizeof(double)));
  std::vector<double> out(count);
  for (double& element : out) {
    T stored{};
    if (!reader_.read(&stored)) return cut(what, "array");
    element = static_cast<double>(stored);
  }
  *value = std::move(out);
  return absl::OkStatus();
}

Status GgufParser::read_bools(std::string_view what, uint64_t count, GgufValue* value) {
  OMNIBUS_RETURN_IF_ERROR(charge(what, count));
  std::vector<bool> out(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t byte = 0;
    if (!reader_.read(&byte)) return cut(what, "array");
    if (byte > 1) {
      return fail(what, reader_.position() - 1, fmt::format("a boolean holds {}, not 0 or 1", byte));
    }
    out[i] = byte == 1;
  }
  *value = std::move(out);
  return absl::OkStatus();
}

Status GgufParser::read_strings(std::string_view what, uint64_t count, GgufValue* value) {
  OMNIBUS_RETURN_IF_ERROR(charge(what, count * sizeof(std::string_view)));
  std::vector<std::string_view> out(count);
  for (std::string_view& element : out) {
    OMNIBUS_RETURN_IF_ERROR(read_string(what, kMaxStringBytes, &element));
    // Long strings are not charged (they stay in the file), but their bytes count towards the header.
    OMNIBUS_RETURN_IF_ERROR(charge(what, 0));
  }
  *value = std::move(out);
  return absl::OkStatus();
}

Status GgufParser::check_split() const {
  const auto found = contents_.metadata.find("split.count");
  if (found == contents_.metadata.end()) return absl::OkStatus();
  int64_t parts = -1;
  if (const auto* u = std::get_if<uint64_t>(&found->second))
    parts = static_cast<int64_t>(std::min<uint64_t>(*u, 1u << 20));
  if (const auto* i = std::get_if<int64_t>(&found->second)) parts = *i;
  if (parts == 0 || parts == 1) return absl::OkStatus();
  return absl::UnimplementedError(
      fmt::format("{}: key 'split.count': one part of a model split over {} files; split files are not "
                  "supported, merge them into one",
                  label_, parts));
}

Status GgufParser::read_alignment(uint64_t* alignment) const {
  *alignment = kDefaultAlignment;
  const auto found = contents_.metadata.find("general.alignment");
  if (found == contents_.metadata.end()) return absl::OkStatus();
  uint64_t given = 0;
  if (const auto* u = std::get_if<uint64_t>(&found->second)) given = *u;
  if (const auto* i = std::get_if<int64_t>(&found->second); i != nullptr && *i > 0)
    given = static_cast<uint64_t>(*i);
  // The format asks for a multiple of 8; without it doubles and blocks would be read unaligned.
  if (given < 8 || (given & (given - 1)) != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: key 'general.alignment' must be a power of two of at least 8, but is {}", label_, given));
  }
  *alignment = given;
  return absl::OkStatus();
}

}  // namespace omnibus::model_files
