// Values of Ollama's API that are read and written by hand: names, durations, times.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ollama/file_digest.h"
#include "ollama/keep_alive.h"
#include "ollama/model_details.h"
#include "ollama/model_names.h"
#include "ollama/timestamp.h"

namespace omnibus {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(ModelNames, ManySpellingsOfOneName) {
  for (const char* name : {"x:latest", "X", "library/x", "registry.ollama.ai/library/x:latest",
                           "Registry.Ollama.AI/Library/X:LATEST"}) {
    EXPECT_TRUE(same_model_name(name, "x")) << name;
  }
  for (const char* name : {"x:1b", "user/x", "example.com/library/x", "xlatest", "library", ""}) {
    EXPECT_FALSE(same_model_name(name, "x")) << name;
  }
  EXPECT_TRUE(same_model_name("HuggingFaceTB/SmolLM2", "huggingfacetb/smollm2:latest"));
}

TEST(ModelNames, ListsShowATag) {
  EXPECT_EQ(name_with_tag("x"), "x:latest");
  EXPECT_EQ(name_with_tag("x:1b"), "x:1b");
  EXPECT_EQ(name_with_tag("localhost:5000/x"), "localhost:5000/x:latest");
  EXPECT_EQ(local_model_name("registry.ollama.ai/library/X:1b"), "X:1b");
}

TEST(KeepAlive, NumbersAreSeconds) {
  EXPECT_EQ(parse_keep_alive(Json(300)), 300 * kSecond);
  EXPECT_EQ(parse_keep_alive(Json(1.5)), kSecond * 3 / 2);
  EXPECT_EQ(parse_keep_alive(Json(0)), 0);
  EXPECT_EQ(parse_keep_alive(Json(-0.5)), kKeepForever);
  EXPECT_EQ(parse_keep_alive(Json(1e30)), kKeepForever);
}

TEST(KeepAlive, Durations) {
  const std::pair<const char*, int64_t> cases[] = {{"5m", 300 * kSecond},
                                                   {"1h30m", 5400 * kSecond},
                                                   {"1h0m1.5s", 3601 * kSecond + kSecond / 2},
                                                   {"250ms", kSecond / 4},
                                                   {"10us", 10'000},
                                                   {"10\xc2\xb5s", 10'000},
                                                   {"7ns", 7},
                                                   {"0", 0},
                                                   {"0s", 0},
                                                   {"-1", kKeepForever},
                                                   {"-1m", kKeepForever},
                                                   {"24", 24 * kSecond},
                                                   {"999999999h", kKeepForever},
                                                   {"+2s", 2 * kSecond},
                                                   {".5s", kSecond / 2}};
  for (const auto& [text, ns] : cases) EXPECT_EQ(parse_keep_alive(Json(text)), ns) << text;
}

TEST(KeepAlive, WhatIsNone) {
  for (const char* text : {"", "-", "+", "m", "5x", "5 m", " 5m", "5m ", "5m3", "1e3s", "--1", "0x5s", ".",
                           ".s", "1..5s", "inf", "nan"}) {
    EXPECT_EQ(parse_keep_alive(Json(text)), std::nullopt) << text;
  }
  for (const Json& value : {Json(true), Json::array(), Json::object(), Json()}) {
    EXPECT_EQ(parse_keep_alive(value), std::nullopt) << value;
  }
}

TEST(Timestamp, Rfc3339WithNanoseconds) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(rfc3339(int64_t{951782400} * kSecond + 7), "2000-02-29T00:00:00.000000007Z");
  EXPECT_EQ(rfc3339(std::numeric_limits<int64_t>::max()), "2262-04-11T23:47:16.854775807Z");
}

class FileDigestTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // What get() says as soon as it says something.
  static std::optional<std::string> wait_for(FileDigest& digest) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (auto known = digest.get()) return known;
      std::this_thread::yield();
    }
    return std::nullopt;
  }

  const std::string path_ = ::testing::TempDir() + fmt::format("omnibus_file_digest_{}", getpid());
};

TEST_F(FileDigestTest, NobodyWaitsForALargeFile) {
  std::ofstream(path_).close();
  std::filesystem::resize_file(path_, uintmax_t{1} << 42);  // sparse: hours of work
  const auto begin = std::chrono::steady_clock::now();
  {
    FileDigest digest(path_);
    EXPECT_EQ(digest.get(), std::nullopt);
    EXPECT_EQ(digest.get(), std::nullopt);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(FileDigestTest, AFailureIsNotForGood) {
  FileDigest digest(path_);
  // Each call after a failure begins anew.
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(digest.get(), std::nullopt);
    std::this_thread::yield();
  }
  std::ofstream(path_) << "hello";
  EXPECT_EQ(wait_for(digest), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
}

TEST(ModelDetails, ParameterSizes) {
  EXPECT_EQ(parameter_size(134'515'008), "134.5M");
  EXPECT_EQ(parameter_size(8'030'261'248), "8.0B");
  EXPECT_EQ(parameter_size(12'345), "12.3K");
  EXPECT_EQ(parameter_size(0), "0");
}

}  // namespace
}  // namespace omnibus
