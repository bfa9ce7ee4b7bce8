#include "src/base/common/log_writer.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace omnibus {
namespace {

constexpr std::chrono::milliseconds kHang(20'000);

std::string gap(int64_t lines) { return "gap " + std::to_string(lines); }

// A pipe that its reader may leave unread.
class LogWriterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_.data()), 0); }
  void TearDown() override {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  void close_end(int which) {
    ::close(ends_[which]);
    ends_[which] = -1;
  }
  std::string read_all() {
    std::string text;
    std::array<char, 4096> chunk{};
    for (ssize_t n; (n = ::read(ends_[0], chunk.data(), chunk.size())) > 0;) {
      text.append(chunk.data(), static_cast<size_t>(n));
    }
    return text;
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(LogWriterTest, LinesOfAThreadStayInOrder) {
  constexpr int kThreads = 4, kLines = 500;
  std::string text;
  std::thread reader([&] { text = read_all(); });
  {
    LogWriter writer(ends_[1], 1 << 20, gap);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < kLines; ++i) writer.put(std::to_string(t) + " " + std::to_string(i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(writer.flush(kHang));
    EXPECT_EQ(writer.dropped(), 0);
  }
  close_end(1);
  reader.join();
  std::vector<int> next(kThreads, 0);
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const int thread = text[at] - '0';
    EXPECT_EQ(text.substr(at + 2, end - at - 2), std::to_string(next.at(thread)++));
  }
  EXPECT_EQ(next, std::vector<int>(kThreads, kLines));
}

// Nobody reads: put() returns, memory is bounded, and when somebody reads again the count of what is missing
// stands where it is missing.
TEST_F(LogWriterTest, AnUnreadPipeCostsTheOldestLinesAndNobodysTime) {
  constexpr int kLines = 20'000;
  const std::string padding(100, 'x');
  std::string text;
  int64_t dropped = 0;
  std::thread reader;
  {
    LogWriter writer(ends_[1], 256 * 1024, gap);  // more than a pipe takes
    for (int i = 0; i < kLines; ++i) writer.put(std::to_string(i) + " " + padding);
    EXPECT_FALSE(writer.flush(std::chrono::milliseconds(10)));
    dropped = writer.dropped();
    EXPECT_GT(dropped, kLines / 2);
    reader = std::thread([&] { text = read_all(); });
    EXPECT_TRUE(writer.flush(kHang));
    EXPECT_EQ(writer.dropped(), dropped);
  }
  close_end(1);
  reader.join();
  int next = 0;
  int64_t missing = 0;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("gap ")) {
      missing += std::stoll(line.substr(4));
      next += std::stoi(line.substr(4));
    } else {
      EXPECT_EQ(line, std::to_string(next++) + " " + padding);
    }
  }
  EXPECT_EQ(next, kLines);
  EXPECT_EQ(missing, dropped);
}

TEST_F(LogWriterTest, AReaderThatIsGoneIsNoHarm) {
  close_end(0);
  LogWriter writer(ends_[1], 1 << 20, gap);
  for (int i = 0; i < 100; ++i) writer.put("to nobody");
  EXPECT_TRUE(writer.flush(kHang));
}

TEST_F(LogWriterTest, APipeThatMustNotBlockIsWaitedFor) {
  ASSERT_EQ(::fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
  std::string text;
  std::thread reader;
  {
    LogWriter writer(ends_[1], 8 << 20, gap);
    for (int i = 0; i < 2000; ++i) writer.put(std::string(100, 'y'));
    reader = std::thread([&] { text = read_all(); });
    EXPECT_TRUE(writer.flush(kHang));
  }
  close_end(1);
  reader.join();
  EXPECT_EQ(text.size(), 2000U * 101);
}

}  // namespace
}  // namespace omnibus
