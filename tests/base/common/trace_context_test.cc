#include "omnibus/base/common/trace_context.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kGood = "00-" + kTrace + "-00f067aa0ba902b7-01";

TEST(TraceContext, TakesWhatTheSpecificationAllows) {
  EXPECT_EQ(trace_id_of(kGood), kTrace);
  EXPECT_EQ(trace_id_of("00-" + kTrace + "-00f067aa0ba902b7-00"), kTrace);
  EXPECT_EQ(trace_id_of("00-" + kTrace + "-00f067aa0ba902b7-ff"), kTrace);
  EXPECT_EQ(trace_id_of("cc" + kGood.substr(2)), kTrace);  // of a later version: its first four fields
  EXPECT_EQ(trace_id_of("cc" + kGood.substr(2) + "-what-the-future-holds"), kTrace);
}

TEST(TraceContext, IgnoresEverythingElse) {
  for (const std::string& header :
       {std::string(), "ff" + kGood.substr(2), kGood + "-more", kGood + " ", " " + kGood,
        "cc" + kGood.substr(2) + ".more", "00-" + std::string(32, '0') + "-00f067aa0ba902b7-01",
        "00-" + kTrace + "-" + std::string(16, '0') + "-01", "0x" + kGood.substr(2),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01")}) {
    EXPECT_EQ(trace_id_of(header), "") << header;
  }
  for (size_t size = 0; size < kGood.size(); ++size) EXPECT_EQ(trace_id_of(kGood.substr(0, size)), "");
}

// Any byte in any place is either a digit that belongs there or makes the header invalid.
TEST(TraceContext, EveryPlaceIsChecked) {
  for (size_t at = 0; at < kGood.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string header = kGood;
      header[at] = static_cast<char>(byte);
      const bool is_digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
      const bool dash = at == 2 || at == 35 || at == 52;
      const bool valid = dash ? byte == '-' : is_digit;
      EXPECT_EQ(!trace_id_of(header).empty(), valid) << header;
    }
  }
}

}  // namespace
}  // namespace omnibus
