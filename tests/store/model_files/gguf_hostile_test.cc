// Hostile files (docs/testing.md, S3): each is refused with a message that names the place, within time and
// memory.
#include <functional>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "omnibus/store/model_files/gguf.h"

#include "bounds.h"
#include "dense_file.h"
#include "fakes/gguf_writer.h"
#include "temp_file.h"

namespace omnibus {
namespace {

using fakes::GgufWriter;
using fakes::put;
using fakes::put_string;
using ::testing::HasSubstr;
using Bytes = GgufWriter::Bytes;

Status status_of(const Bytes& bytes) { return GgufFile::parse(bytes, "hostile.gguf").status(); }

void expect_refused(const Bytes& bytes, const std::string& part,
                    StatusCode code = StatusCode::kInvalidArgument) {
  Status status;
  const Cost cost = cost_of([&] { status = status_of(bytes); });
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(status_message(status), HasSubstr("hostile.gguf: "));
  EXPECT_THAT(status_message(status), HasSubstr(part));
  EXPECT_LE(cost.seconds, kMaxSeconds) << part;
  EXPECT_LT(cost.peak_growth_kib, kMaxGrowthKib) << part;
}

Bytes header(uint32_t version, uint64_t tensors, uint64_t pairs) {
  Bytes out = {'G', 'G', 'U', 'F'};
  put(&out, version);
  put(&out, tensors);
  put(&out, pairs);
  return out;
}

TEST(GgufHostile, Headers) {
  expect_refused({}, "magic");
  expect_refused({'G', 'G', 'U'}, "magic");
  expect_refused({'G', 'G', 'U', 'F', 3, 0}, "version");
  Bytes other = header(3, 0, 0);
  other[0] = 'P';
  other[1] = 'K';
  expect_refused(other, "not a GGUF file: it begins with 'PKUF'");
  const std::string lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:00";
  expect_refused({lfs.begin(), lfs.end()}, "Git LFS pointer");
  expect_refused(header(0, 0, 0), "version 0");
  expect_refused(header(1, 0, 0), "version 1");
  expect_refused(header(4, 0, 0), "version 4");
  expect_refused(header(0x03000000, 0, 0), "endianness");
  EXPECT_TRUE(status_of(header(3, 0, 0)).ok());
  EXPECT_TRUE(status_of(header(2, 0, 0)).ok());
}

TEST(GgufHostile, Counts) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    expect_refused(header(3, 0, count), std::to_string(count) + " metadata keys");
    expect_refused(header(3, count, 0), std::to_string(count) + " tensors");
  }
  // Counts that the file's size allows, but nothing behind them.
  Bytes zeros = header(3, 0, 1000);
  zeros.resize(zeros.size() + 20000);
  expect_refused(zeros, "key 0 at byte 24: the key is empty");
  zeros = header(3, 1000, 0);
  zeros.resize(zeros.size() + 30000);
  expect_refused(zeros, "tensor 0 at byte 24: the name is empty");
}

TEST(GgufHostile, Strings) {
  for (const uint64_t length : {uint64_t{65}, uint64_t{60} << 20}) {
    Bytes bytes = header(3, 0, 1);
    put_string(&bytes, "a.key");
    put(&bytes, uint32_t{8});
    put(&bytes, length);
    bytes.resize(bytes.size() + 64, 'x');
    expect_refused(bytes, "key 'a.key' at byte 41: a string of " + std::to_string(length) +
                              " bytes, but only 64 bytes remain");
  }
  for (const uint64_t length :
       {(uint64_t{64} << 20) + 1, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 40}) {
    Bytes bytes = header(3, 0, 1);
    put_string(&bytes, "a.key");
    put(&bytes, uint32_t{8});
    put(&bytes, length);
    bytes.resize(bytes.size() + 64, 'x');
    expect_refused(bytes, "(limit 67108864)");
  }
}

TEST(GgufHostile, Keys) {
  GgufWriter longest;
  longest.set_u8(std::string(65535, 'k'), 1);
  EXPECT_TRUE(status_of(longest.bytes()).ok());
  GgufWriter too_long;
  too_long.set_u8(std::string(65536, 'k'), 1);
  expect_refused(too_long.bytes(), "(limit 65535)");
  GgufWriter twice;
  twice.append_raw("a\n\"b", 0, {1});
  twice.append_raw("a\n\"b", 0, {1});
  expect_refused(twice.bytes(), "key 'a\\x0a\"b' at byte 41: the key occurs twice");
  GgufWriter kind;
  kind.set_raw("k", 13, {0, 0, 0, 0});
  expect_refused(kind.bytes(), "key 'k' at byte 33: unknown value type 13");
  GgufWriter flag;
  flag.set_raw("k", 7, {2});
  expect_refused(flag.bytes(), "a boolean holds 2");
}

Bytes array_head(uint32_t type, uint64_t count) {
  Bytes out;
  put(&out, type);
  put(&out, count);
  return out;
}

TEST(GgufHostile, Arrays) {
  for (const uint32_t type : {0u, 4u, 7u, 8u, 12u}) {
    for (const uint64_t count : {uint64_t{100000}, uint64_t{1} << 61, uint64_t{1} << 63, ~uint64_t{0}}) {
      GgufWriter file;
      file.set_raw("list", 9, array_head(type, count));
      expect_refused(file.bytes(),
                     "key 'list' at byte 44: an array of " + std::to_string(count) + " elements");
    }
  }
  GgufWriter nested;
  nested.set_raw("list", 9, array_head(9, 1));
  expect_refused(nested.bytes(), "nested arrays");
  GgufWriter unknown;
  unknown.set_raw("list", 9, array_head(99, 0));
  expect_refused(unknown.bytes(), "unknown element type 99");
  GgufWriter huge;
  Bytes value = array_head(10, 1);
  put(&value, ~uint64_t{0});
  huge.set_raw("list", 9, value);
  expect_refused(huge.bytes(), "18446744073709551615 is out of range");
}

// A long array of small things would decode to more memory than the file itself has.
TEST(GgufHostile, DecodedSizeIsBounded) {
  Bytes value = array_head(0, 30'000'000);
  value.resize(value.size() + 30'000'000);
  GgufWriter file;
  file.set_raw("list", 9, value);
  const Bytes bytes = file.bytes();
  expect_refused(bytes, "larger than omnibus accepts");
}

TEST(GgufHostile, SplitFilesAreNamed) {
  GgufWriter file = dense_file();
  file.set_u16("split.count", 3);
  expect_refused(file.bytes(), "split over 3 files", StatusCode::kUnimplemented);
  file.set_u16("split.count", 1);
  EXPECT_TRUE(status_of(file.bytes()).ok());
}

TEST(GgufHostile, Alignment) {
  for (const uint32_t alignment : {0u, 1u, 4u, 12u, 33u, 0xffffffffu}) {
    GgufWriter file = dense_file();
    file.set_u32("general.alignment", alignment);
    expect_refused(file.bytes(), "general.alignment");
  }
  GgufWriter text = dense_file();
  text.set_string("general.alignment", "32");
  expect_refused(text.bytes(), "general.alignment");
  GgufWriter beyond = dense_file();
  beyond.set_u32("general.alignment", 0x80000000u);
  expect_refused(beyond.bytes(), "not a multiple of 2147483648");
}

// One good tensor "a" of 32 floats, to be spoilt.
void expect_tensor_refused(const std::function<void(GgufWriter::Tensor*)>& spoil, const std::string& part,
                           StatusCode code = StatusCode::kInvalidArgument) {
  GgufWriter file;
  file.add_tensor("a", {32}, GgmlType::kF32);
  spoil(&file.tensors()[0]);
  expect_refused(file.bytes(), part, code);
}

TEST(GgufHostile, TensorShapes) {
  using Tensor = GgufWriter::Tensor;
  const uint64_t big = uint64_t{1} << 32;
  expect_tensor_refused([&](Tensor* t) { t->dims = {big, big, 1, 1}; }, "number of elements overflows");
  expect_tensor_refused([&](Tensor* t) { t->dims = {big, big >> 1, 1, 1}; }, "number of elements overflows");
  expect_tensor_refused([&](Tensor* t) { t->dims = {big, big >> 2}; }, "number of bytes overflows");
  expect_tensor_refused([&](Tensor* t) { t->dims = {~uint64_t{0}}; }, "dimension 0 is out of range");
  expect_tensor_refused(
      [&](Tensor* t) {
        t->dims = {32, uint64_t{1} << 63, 0};
      },
      "dimension 1 is out of range");
  expect_tensor_refused([&](Tensor* t) { t->dims = {2, 2, 2, 2, 2}; }, "5 dimensions (limit 4)");
  expect_tensor_refused(
      [&](Tensor* t) {
        t->dims = {16};
        t->type = 8;
      },
      "not whole blocks of 32 (Q8_0)");
  expect_tensor_refused(
      [&](Tensor* t) {
        t->dims = {128};
        t->type = 12;
      },
      "not whole blocks of 256 (Q4_K)");
  expect_tensor_refused([&](Tensor* t) { t->dims = {uint64_t{1} << 62}; }, "number of bytes overflows");
}

TEST(GgufHostile, TensorTypes) {
  const auto with_type = [](uint32_t type) { return [type](GgufWriter::Tensor* t) { t->type = type; }; };
  expect_tensor_refused(with_type(4), "Q4_2 (removed", StatusCode::kUnimplemented);
  expect_tensor_refused(with_type(31), "Q4_0_4_4 (removed", StatusCode::kUnimplemented);
  expect_tensor_refused(with_type(23), "IQ4_XS", StatusCode::kUnimplemented);
  expect_tensor_refused(with_type(536870912), "type 536870912", StatusCode::kUnimplemented);
}

TEST(GgufHostile, TensorNames) {
  GgufWriter longest;
  longest.add_tensor(std::string(63, 'n'), {32}, GgmlType::kF32);
  EXPECT_TRUE(status_of(longest.bytes()).ok());
  expect_tensor_refused([](auto* t) { t->name = std::string(64, 'n'); }, "(limit 63)");
  expect_tensor_refused([](auto* t) { t->name.clear(); }, "the name is empty");
  GgufWriter twice;
  twice.add_tensor("b", {8}, GgmlType::kF32);
  twice.add_tensor("a", {8}, GgmlType::kF32);
  twice.add_tensor("b", {8}, GgmlType::kF32);
  expect_refused(twice.bytes(), "tensor 'b' at byte 90: the name occurs twice");
}

TEST(GgufHostile, TensorOffsets) {
  const auto at = [](uint64_t offset) {
    return [offset](GgufWriter::Tensor* t) {
      t->has_offset = true;
      t->offset = offset;
    };
  };
  expect_tensor_refused(at(32), "end beyond the data section of 128 bytes");
  expect_tensor_refused(at(uint64_t{1} << 40), "end beyond the data section");
  expect_tensor_refused(at(~uint64_t{0} - 31), "end beyond the data section");
  expect_tensor_refused(at(8), "offset 8 is not a multiple of 32");
  GgufWriter file;
  for (const char* name : {"a", "b", "c"}) file.add_tensor(name, {16}, GgmlType::kF32);
  at(0)(&file.tensors()[2]);
  expect_refused(file.bytes(), "tensor 'c' at byte 90: its data overlaps that of tensor 'a'");
  at(32)(&file.tensors()[2]);
  expect_refused(file.bytes(), "its data overlaps that of tensor 'a'", StatusCode::kInvalidArgument);
  at(128)(&file.tensors()[0]);
  at(0)(&file.tensors()[2]);
  EXPECT_TRUE(status_of(file.bytes()).ok());  // in any order, as long as nothing overlaps
}

// Found by the fuzzer: an empty tensor in a file that ends before its padded data section would begin.
TEST(GgufHostile, EmptyTensorBeyondTheEnd) {
  GgufWriter file;
  file.add_tensor("t", {0}, GgmlType::kF32);
  uint64_t header_bytes = 0;
  Bytes bytes = file.bytes(&header_bytes);
  bytes.resize(header_bytes);
  auto parsed = GgufFile::parse(bytes, "empty tensor");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE((*parsed)->tensor_data((*parsed)->tensors()[0]).empty());
  (*parsed)->release_pages((*parsed)->tensors()[0]);
}

// 100,000 tensors that all overlap in a chain but one must not take quadratic time.
TEST(GgufHostile, ManyTensorsTakeLinearithmicTime) {
  GgufWriter file;
  for (int i = 0; i < 100'000; ++i) file.add_tensor("t" + std::to_string(i), {1}, GgmlType::kF32);
  Bytes bytes = file.bytes();
  const Cost good = cost_of([&] { EXPECT_TRUE(status_of(bytes).ok()); });
  EXPECT_LE(good.seconds, kMaxSeconds);
  GgufWriter::Tensor& last = file.tensors().back();
  last.has_offset = true;
  last.offset = 0;
  bytes = file.bytes();
  expect_refused(bytes, "tensor 't99999'");
}

TEST(GgufHostile, TensorsMoreThanMemoryAllows) {
  GgufWriter file;
  file.add_tensor("t", {0}, GgmlType::kF32);
  uint64_t header_bytes = 0;
  Bytes bytes = file.bytes(&header_bytes);
  const Bytes entry(bytes.begin() + 24, bytes.begin() + header_bytes);
  bytes = header(3, 1'000'000, 0);
  for (int i = 0; i < 1'000'000; ++i) bytes.insert(bytes.end(), entry.begin(), entry.end());
  expect_refused(bytes, "larger than omnibus accepts");
  bytes = header(3, 1'000'001, 0);
  for (int i = 0; i < 1'000'001; ++i) bytes.insert(bytes.end(), entry.begin(), entry.end());
  expect_refused(bytes, "1000001 tensors");
}

// Sparse files: huge for the reader, nothing on the disk.
void expect_sparse_refused(const Bytes& begin, const std::string& part) {
  TempFolder folder;
  const std::string path = folder.write("sparse.gguf", begin);
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 36), 0);
  Status status;
  const Cost cost = cost_of([&] { status = GgufFile::open(path).status(); });
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status_message(status), HasSubstr(path));
  EXPECT_THAT(status_message(status), HasSubstr(part));
  EXPECT_LE(cost.seconds, kMaxSeconds) << part;
  EXPECT_LT(cost.peak_growth_kib, kMaxGrowthKib) << part;
}

TEST(GgufHostile, SparseFiles) {
  expect_sparse_refused(header(3, 0, 60'000), "key 0 at byte 24: the key is empty");
  expect_sparse_refused(header(3, 1'000'000, 0), "tensor 0 at byte 24: the name is empty");
  for (const uint32_t type : {0u, 6u, 7u, 8u}) {
    Bytes bytes = header(3, 0, 1);
    put_string(&bytes, "list");
    put(&bytes, uint32_t{9});
    put(&bytes, type);
    put(&bytes, uint64_t{1} << 32);
    expect_sparse_refused(bytes, "larger than omnibus accepts");
  }
  // Just within the budget, with garbage behind it.
  Bytes within = header(3, 0, 2);
  put_string(&within, "list");
  put(&within, uint32_t{9});
  put(&within, uint32_t{7});
  put(&within, uint64_t{40'000'000});
  expect_sparse_refused(within, "key 1 at byte 40000052: the key is empty");
  // Little to decode, but a long way to walk: many strings of a few pages each.
  Bytes bytes = header(3, 0, 1);
  put_string(&bytes, "list");
  put(&bytes, uint32_t{9});
  put(&bytes, uint32_t{8});
  put(&bytes, uint64_t{1'000'000});
  bytes.reserve(120'000'000);
  while (bytes.size() < 110'000'000) {
    put(&bytes, uint64_t{9000});
    bytes.resize(bytes.size() + 9000, 'x');
  }
  expect_sparse_refused(bytes, "larger than omnibus accepts");
}

}  // namespace
}  // namespace omnibus
