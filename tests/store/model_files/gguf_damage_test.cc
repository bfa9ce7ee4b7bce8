// Damaged files and things that are no files (docs/testing.md, F17): a clear error within 2 s, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"
#include "omnibus/store/model_files/tokenizer_spec.h"

#include "bounds.h"
#include "dense_file.h"
#include "fakes/damaged_files.h"
#include "temp_file.h"

namespace omnibus {
namespace {

using ::testing::HasSubstr;

// Everything that is read before weights are.
Status load(const std::string& path) {
  auto file = GgufFile::open(path);
  OMNIBUS_RETURN_IF_ERROR(file.status());
  OMNIBUS_RETURN_IF_ERROR(read_model_config(**file).status());
  return read_tokenizer_spec(**file).status();
}

StatusCode expect_refused(const std::string& path, const std::string& part) {
  Status status;
  const Cost cost = cost_of([&] { status = load(path); });
  EXPECT_FALSE(status.ok()) << path;
  EXPECT_THAT(status_message(status), HasSubstr(path));
  EXPECT_THAT(status_message(status), HasSubstr(part));
  EXPECT_LE(cost.seconds, kMaxSeconds);
  return status.code();
}

TEST(F17Gguf, CutsAndFlips) {
  uint64_t header_bytes = 0;
  const auto good = dense_file().bytes(&header_bytes);
  TempFolder folder;
  ASSERT_TRUE(load(folder.write("good.gguf", good)).ok());
  const uint64_t seed = 20240617;
  SCOPED_TRACE("seed " + std::to_string(seed));
  int refused = 0;
  for (const fakes::DamagedFile& bad : fakes::damaged_files(good, header_bytes, 10, 50, seed)) {
    SCOPED_TRACE(bad.what);
    const std::string path = folder.write("bad.gguf", bad.bytes);
    if (bad.cut) {
      expect_refused(path, "");
      continue;
    }
    Status status;
    EXPECT_LE(cost_of([&] { status = load(path); }).seconds, kMaxSeconds);
    EXPECT_TRUE(status.ok() || status_message(status).find(path) != std::string::npos) << status;
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 20);  // a flip inside a text leaves a valid file, one in a length does not
}

// No bit of the header may crash the readers: all of them, in memory.
TEST(F17Gguf, EveryBitOfTheFirstKilobytes) {
  uint64_t header_bytes = 0;
  auto bytes = dense_file().bytes(&header_bytes);
  for (uint64_t bit = 0; bit < std::min<uint64_t>(header_bytes, 600) * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    if (auto file = GgufFile::parse(bytes, "flip"); file.ok()) {
      (void)read_model_config(**file);
      (void)read_tokenizer_spec(**file);
    }
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }
  EXPECT_TRUE(GgufFile::parse(bytes, "whole").ok());
}

TEST(F17Gguf, NotARegularFile) {
  TempFolder folder;
  EXPECT_EQ(expect_refused(folder.path("absent.gguf"), "no such file"), StatusCode::kNotFound);
  EXPECT_EQ(expect_refused(folder.path("no/folder.gguf"), "no such file"), StatusCode::kNotFound);
  expect_refused(folder.write("empty.gguf", {}), "the file is empty");
  ASSERT_EQ(::mkdir(folder.path("dir.gguf").c_str(), 0700), 0);
  expect_refused(folder.path("dir.gguf"), "is a directory");
  expect_refused(folder.path(""), "is a directory");
  ASSERT_EQ(::mkfifo(folder.path("fifo.gguf").c_str(), 0600), 0);
  expect_refused(folder.path("fifo.gguf"), "is a FIFO");
  expect_refused("/dev/null", "is a device");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  folder.path("s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  expect_refused(folder.path("s"), "is a socket");
  ::close(fd);
  EXPECT_FALSE(GgufFile::open("").ok());
}

TEST(F17Gguf, SymbolicLinks) {
  TempFolder outside;
  TempFolder folder;
  const auto good = dense_file().bytes();
  ASSERT_EQ(::symlink(outside.write("good.gguf", good).c_str(), folder.path("out.gguf").c_str()), 0);
  expect_refused(folder.path("out.gguf"), "symbolic link that leads out of its folder");
  ASSERT_EQ(::symlink("../..", folder.path("up").c_str()), 0);
  expect_refused(folder.path("up"), "symbolic link that leads out of its folder");
  ASSERT_EQ(::symlink("circle.gguf", folder.path("circle.gguf").c_str()), 0);
  expect_refused(folder.path("circle.gguf"), "symbolic link");
  folder.write("real.gguf", good);
  ASSERT_EQ(::symlink("real.gguf", folder.path("inside.gguf").c_str()), 0);
  EXPECT_TRUE(load(folder.path("inside.gguf")).ok()) << load(folder.path("inside.gguf"));
}

// The mapping is private to the process and its pages can be given back and read again.
TEST(GgufOpen, ReleasedPagesAreReadAgain) {
  TempFolder folder;
  fakes::GgufWriter file;
  file.add_tensor("a", {1 << 18}, GgmlType::kF32, 7);
  const std::string path = folder.write("big.gguf", file.bytes());
  auto opened = GgufFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const GgufTensorInfo& a = (*opened)->tensors()[0];
  const auto sum = [&] {
    uint64_t total = 0;
    for (const uint8_t byte : (*opened)->tensor_data(a)) total += byte;
    return total;
  };
  EXPECT_EQ(sum(), 7u << 20);
  EXPECT_GE(mapped_kib(path), 1024);
  (*opened)->release_pages(a);
  EXPECT_LE(mapped_kib(path), 2 * ::sysconf(_SC_PAGESIZE) / 1024);
  EXPECT_EQ(sum(), 7u << 20);
}

}  // namespace
}  // namespace omnibus
