#include <gtest/gtest.h>

#include "src/cli/progress_bar.h"

namespace omnibus {
namespace {

TEST(ProgressLine, FitsIntoAnyWidth) {
  for (int width = 0; width < 200; ++width) {
    for (const char* title : {"", "loading model.gguf", "loading \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"}) {
      for (const int64_t total : {0, 1 << 20}) {
        const std::string line = progress_line(title, 1 << 19, total, "1.0 MiB/s", width);
        EXPECT_LE(line.size(), static_cast<size_t>(std::max(0, width - 1)));
      }
    }
  }
}

TEST(ProgressLine, TheBarShrinksBeforeTheFiguresAreCut) {
  const std::string wide = progress_line("m", 1 << 19, 1 << 20, "", 100);
  EXPECT_NE(wide.find("[###############...............]"), std::string::npos) << wide;
  const std::string narrow = progress_line("m", 1 << 19, 1 << 20, "", 40);
  EXPECT_NE(narrow.find("0.5 MiB of 1.0 MiB"), std::string::npos) << narrow;
  EXPECT_LT(narrow.find('#'), narrow.size());
}

TEST(ProgressLine, ACharacterIsNotCutInTwo) {
  const std::string title = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
  EXPECT_EQ(progress_line(title, 0, 0, "", 4), "\xc3\xa9");
  EXPECT_EQ(progress_line(title, 0, 0, "", 5), "\xc3\xa9\xc3\xa9");
}

}  // namespace
}  // namespace omnibus
