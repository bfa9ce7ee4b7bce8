#include "omnibus/client/printable.h"

#include <gtest/gtest.h>

#include "random_stream.h"

namespace omnibus::client {
namespace {

TEST(Printable, KeepsTextAndEscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("plain text, é, 你好, 😀"), "plain text, é, 你好, 😀");
  EXPECT_EQ(printable("\x1b[2J\r\n\x7f"), "\\x1b[2J\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b"
            "2J");
  EXPECT_EQ(printable("\x9B"), "\\x9b");
  EXPECT_EQ(printable("\xC3"), "\\xc3");
}

TEST(Printable, NoControlByteIsLeftOfAnything) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(seed, 0);
    std::string text(static_cast<size_t>(random.below(20)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(256));
    const std::string out = printable(text);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto c = static_cast<uint8_t>(out[i]);
      ASSERT_FALSE(c < 0x20 || c == 0x7F) << "seed " << seed;
      const bool c1 = c == 0xC2 && i + 1 < out.size() && static_cast<uint8_t>(out[i + 1]) < 0xA0;
      ASSERT_FALSE(c1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace omnibus::client
