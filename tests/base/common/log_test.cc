#include "omnibus/base/common/log.h"

#include <gtest/gtest.h>

#include "omnibus/base/common/log_flush.h"
#include "omnibus/base/common/log_limiter.h"
#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

constexpr int64_t kTime = 1'767'225'600'007'000'000;  // 2026-01-01T00:00:00.007Z

TEST(Log, JsonLineHasStableKeysThenFields) {
  EXPECT_EQ(format_log_line(LogFormat::kJson, kTime, LogLevel::kWarning, "a \"b\"\n",
                            {{"text", std::string_view("x\ty")},
                             {"count", int64_t{-3}},
                             {"ms", 12.5},
                             {"yes", true},
                             {"none", std::string_view()}}),
            R"({"ts":"2026-01-01T00:00:00.007Z","level":"warning","msg":"a \"b\"\u000a",)"
            R"("text":"x\u0009y","count":-3,"ms":12.5,"yes":true})");
}

TEST(Log, TextLineQuotesWhatIsNoWord) {
  const std::string line = format_log_line(
      LogFormat::kText, kTime, LogLevel::kInfo, "request finished",
      {{"id", std::string_view("req_1")}, {"key", std::string_view("my key")}, {"n", int64_t{2}}});
  EXPECT_EQ(line.substr(8), R"(.007 I request finished id=req_1 key="my key" n=2)");
}

TEST(Log, InfinityIsNull) {
  const std::string line = format_log_line(LogFormat::kJson, kTime, LogLevel::kInfo, "m",
                                           {{"x", std::numeric_limits<double>::infinity()}});
  EXPECT_TRUE(line.ends_with(R"("msg":"m","x":null})")) << line;
}

// Whatever bytes a message or value has: one line, printable, and in JSON nothing that is not UTF-8.
TEST(Log, AnyBytesStayOneLine) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t j = 0; j < splitmix64(seed, i) % 24; ++j)
      text += static_cast<char>(splitmix64(seed ^ j, i) >> 8U);
    for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
      const std::string line =
          format_log_line(format, kTime, LogLevel::kInfo, text, {{"v", std::string_view(text)}});
      for (const char c : line) {
        ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7F) << line;
      }
    }
  }
  EXPECT_TRUE(
      format_log_line(LogFormat::kJson, kTime, LogLevel::kInfo, "a\xFF\xC0\x80z\xED\xA0\x80")
          .ends_with("\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"}"));
  const std::string characters = "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80";
  EXPECT_TRUE(format_log_line(LogFormat::kJson, kTime, LogLevel::kInfo, characters)
                  .ends_with("\"" + characters + "\"}"));
}

// U+0080 to U+009F are controls, too: U+009B is what ESC [ is. Their neighbours are not.
TEST(Log, ControlsOfC1AreEscaped) {
  for (int c = 0x80; c <= 0x9F; ++c) {
    const std::string text = std::string("a\xC2") + static_cast<char>(c) + "z";
    const std::string escaped = fmt::format("a\\u{:04x}z", c);
    for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
      const std::string line =
          format_log_line(format, kTime, LogLevel::kInfo, text, {{"v", std::string_view(text)}});
      EXPECT_EQ(line.find('\xC2'), std::string::npos) << line;
      EXPECT_NE(line.find(escaped), line.rfind(escaped)) << line;
    }
  }
  const std::string harmless = "\xC2\xA0\xC3\x80\xC3\x9B\xE6\xBC\x9B";
  EXPECT_TRUE(
      format_log_line(LogFormat::kText, kTime, LogLevel::kInfo, harmless).ends_with(" I " + harmless));
}

TEST(LogLimiter, LetsSoManyThroughInEachWindowAndSaysTheRest) {
  MetricsRegistry metrics;
  ManualClock clock;
  const Counter counter = metrics.counter("suppressed_total", "h");
  testing::internal::CaptureStderr();
  {
    LogLimiter limiter("lines about refused requests", 3, 1000, &clock, counter);
    for (int window = 0; window < 3; ++window) {
      int admitted = 0;
      for (int i = 0; i < 10; ++i) {
        admitted += limiter.admit();
        clock.advance_ns(50);
      }
      EXPECT_EQ(admitted, 3);
      clock.advance_ns(1000);
    }
  }
  flush_log();
  const std::string log = testing::internal::GetCapturedStderr();
  size_t reports = 0;
  for (size_t at = 0;
       (at = log.find("7 lines about refused requests were suppressed", at)) != std::string::npos; ++at)
    ++reports;
  EXPECT_EQ(reports, 3U) << log;
  EXPECT_NE(metrics.serialize().find("suppressed_total 21"), std::string::npos);
}

}  // namespace
}  // namespace omnibus
