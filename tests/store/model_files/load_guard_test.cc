// A file cut short while it is loaded ends the process with a line that names it.
#include "omnibus/store/model_files/load_guard.h"

#include <csignal>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "fakes/gguf_writer.h"
#include "temp_file.h"

namespace omnibus {
namespace {

std::string write_big(const TempFolder& folder) {
  fakes::GgufWriter file;
  file.add_tensor("a", {1 << 18}, GgmlType::kF32, 7);
  return folder.write("big.gguf", file.bytes());
}

// Reads a byte of tensor a that no longer exists.
void touch_after_cut(const std::string& path, bool guarded) {
  auto file = GgufFile::open(path);
  std::optional<LoadGuard> guard;
  if (guarded) guard.emplace(*file);
  if (::truncate(path.c_str(), 8192) != 0) return;
  const volatile uint8_t lost = (*file)->tensor_data((*file)->tensors()[0])[500'000];
  (void)lost;
}

TEST(LoadGuardDeathTest, CutFileIsNamedWithItsOwnExitCode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TempFolder folder;
  EXPECT_EXIT(
      touch_after_cut(write_big(folder), true), ::testing::ExitedWithCode(kUnreadableFileExit),
      "big.gguf: the file was cut short or cannot be read at byte 50[0-9]+ while it was being loaded");
}

TEST(LoadGuardDeathTest, OutsideOfAGuardTheSignalKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TempFolder folder;
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);
        touch_after_cut(write_big(folder), false);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST(LoadGuardDeathTest, OtherBusErrorsKeepTheirMeaning) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TempFolder folder;
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);
        auto file = GgufFile::open(write_big(folder));
        const LoadGuard guard(*file);
        std::raise(SIGBUS);
        std::raise(SIGBUS);  // the first one brought the earlier action back
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST(LoadGuard, RestoresTheEarlierAction) {
  TempFolder folder;
  auto file = GgufFile::open(write_big(folder));
  ASSERT_TRUE(file.ok());
  struct sigaction before = {};
  struct sigaction during = {};
  struct sigaction after = {};
  ::sigaction(SIGBUS, nullptr, &before);
  {
    const LoadGuard one(*file);
    const LoadGuard two(*file);
    ::sigaction(SIGBUS, nullptr, &during);
  }
  ::sigaction(SIGBUS, nullptr, &after);
  EXPECT_NE(during.sa_sigaction, before.sa_sigaction);
  EXPECT_EQ(after.sa_sigaction, before.sa_sigaction);
}

}  // namespace
}  // namespace omnibus
