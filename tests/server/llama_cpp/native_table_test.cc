#include <set>

#include <gtest/gtest.h>

#include "src/server/llama_cpp/native_fields.h"
#include "src/server/llama_cpp/timings.h"

namespace omnibus {
namespace {

Status take(const std::string& name, const std::string& value, unsigned route, NativeFields& fields) {
  Json json = parse_json("{\"" + name + "\":" + value + "}").value();
  std::vector<std::string> ignored;
  return take_fields(json, native_field_table(), FieldOptions{route, true}, fields, ignored);
}

TEST(NativeTable, NoNameTwiceOnOneRoute) {
  for (const unsigned route : {kOnNativeCompletion, kOnInfill}) {
    std::set<std::string_view> names;
    for (const auto& field : native_field_table()) {
      if ((field.rule.routes & route) == 0) continue;
      EXPECT_TRUE(names.insert(field.rule.name).second) << field.rule.name;
    }
    EXPECT_GT(names.size(), 50U);
  }
}

// Every field x every kind of value: OK or a 400 that names the field; null is always absent.
TEST(NativeTable, EveryFieldWithEveryKindOfValue) {
  for (const auto& field : native_field_table()) {
    const unsigned route = (field.rule.routes & kOnNativeCompletion) != 0 ? kOnNativeCompletion : kOnInfill;
    const std::string name(field.rule.name);
    for (const char* value : {"-1", "0", "1", "0.5", "2147483648", "9223372036854775808", "1e300", "true",
                              "false", "\"\"", "\"x\"", "[]", "[1]", "[\"\"]", "[[]]", "{}", "{\"a\":1}"}) {
      NativeFields fields;
      const Status status = take(name, value, route, fields);
      if (status.ok()) continue;
      const ErrorDetail detail = error_detail(status);
      EXPECT_EQ(detail.http, 400) << name << " = " << value;
      EXPECT_EQ(detail.param.substr(0, name.size()), name) << value;
    }
    NativeFields fields;
    EXPECT_TRUE(take(name, "null", route, fields).ok()) << name;
  }
}

TEST(NativeTable, SoftBoundsClamp) {
  NativeFields fields;
  for (const auto& [name, value] :
       {std::pair("temperature", "-3"), {"top_p", "7"}, {"min_p", "-7"}, {"top_k", "-5"}}) {
    ASSERT_TRUE(take(name, value, kOnNativeCompletion, fields).ok()) << name;
  }
  EXPECT_EQ(fields.sampling.temperature, 0);
  EXPECT_EQ(fields.sampling.top_p, 1);
  EXPECT_EQ(fields.sampling.min_p, 0);
  EXPECT_EQ(fields.sampling.top_k, 0);
}

TEST(Timings, RatesAreOverWhatWasComputed) {
  RequestTimeline timeline;
  timeline.first_scheduled_ns = 1'000'000;
  timeline.first_token_ns = 5'000'000;
  timeline.finished_ns = 25'000'000;
  const Json json =
      timings_json(RequestUsage{.prompt_tokens = 10, .completion_tokens = 6, .cached_tokens = 2}, timeline);
  EXPECT_EQ(json["cache_n"], 2);
  EXPECT_EQ(json["prompt_n"], 8);
  EXPECT_DOUBLE_EQ(json["prompt_ms"], 4);
  EXPECT_DOUBLE_EQ(json["prompt_per_token_ms"], 0.5);
  EXPECT_DOUBLE_EQ(json["prompt_per_second"], 2000);
  EXPECT_DOUBLE_EQ(json["predicted_ms"], 20);
  EXPECT_DOUBLE_EQ(json["predicted_per_token_ms"], 4);
  EXPECT_DOUBLE_EQ(json["predicted_per_second"], 250);
}

TEST(Timings, NothingToDivideByIsZero) {
  RequestTimeline timeline;
  timeline.first_scheduled_ns = timeline.first_token_ns = timeline.finished_ns = 5;
  for (const int32_t tokens : {0, 1, 3}) {
    const Json json = timings_json(RequestUsage{.prompt_tokens = 2, .completion_tokens = tokens}, timeline);
    for (const char* name : {"prompt_per_second", "predicted_per_second", "prompt_ms", "predicted_ms"}) {
      EXPECT_EQ(json[name], 0) << name;
    }
  }
}

}  // namespace
}  // namespace omnibus
