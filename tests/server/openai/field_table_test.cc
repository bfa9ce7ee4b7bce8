#include <set>

#include <gtest/gtest.h>

#include "src/server/openai/generation_fields.h"

namespace omnibus {
namespace {

Status take(const std::string& body, unsigned route, std::vector<std::string>* ignored = nullptr,
            bool strict = false) {
  Json json = parse_json(body).value();
  GenerationFields fields;
  std::vector<std::string> names;
  const Status status =
      take_fields(json, generation_field_table(), FieldOptions{route, strict}, fields, names);
  if (ignored != nullptr) *ignored = names;
  return status;
}

std::string object(std::string_view name, const std::string& value) {
  return "{\"" + std::string(name) + "\":" + value + "}";
}

TEST(FieldTable, NoNameTwiceOnOneRoute) {
  for (const unsigned route : {kOnChat, kOnCompletions}) {
    std::set<std::string_view> names;
    for (const auto& field : generation_field_table()) {
      if ((field.rule.routes & route) == 0) continue;
      EXPECT_TRUE(names.insert(field.rule.name).second) << field.rule.name;
    }
    EXPECT_GT(names.size(), 40U);
  }
}

TEST(FieldTable, UsedFieldsAreTakenAndOthersAreNot) {
  for (const auto& field : generation_field_table()) {
    EXPECT_EQ(field.take != nullptr, field.rule.verdict == Verdict::kUsed) << field.rule.name;
  }
}

// Every field x every kind of value: OK or a 400 that names the field; null is always absent.
TEST(FieldTable, EveryFieldWithEveryKindOfValue) {
  const std::vector<std::string> values = {"-1",
                                           "0",
                                           "1",
                                           "0.5",
                                           "2147483648",
                                           "9223372036854775808",
                                           "-9223372036854775809",
                                           "1e300",
                                           "-1e300",
                                           "\"\"",
                                           "\"1\"",
                                           "true",
                                           "false",
                                           "[]",
                                           "[null]",
                                           "[[]]",
                                           "[-1]",
                                           "{}",
                                           "{\"a\":null}",
                                           "{\"5\":\"x\"}",
                                           "[\"\"]"};
  for (const auto& field : generation_field_table()) {
    for (const unsigned route : {kOnChat, kOnCompletions}) {
      if ((field.rule.routes & route) == 0) continue;
      std::vector<std::string> ignored;
      EXPECT_TRUE(take(object(field.rule.name, "null"), route, &ignored, true).ok());
      EXPECT_TRUE(ignored.empty());
      for (const std::string& value : values) {
        const Status status = take(object(field.rule.name, value), route, &ignored, true);
        if (status.ok()) {
          EXPECT_EQ(ignored.size(), field.rule.verdict == Verdict::kIgnored ? 1U : 0U);
          continue;
        }
        const ErrorDetail detail = error_detail(status);
        EXPECT_EQ(detail.http, 400);
        EXPECT_TRUE(detail.param.starts_with(field.rule.name)) << detail.param;
        EXPECT_FALSE(detail.code.empty());
      }
    }
  }
}

TEST(FieldTable, BoundsAreInclusive) {
  for (const auto& field : generation_field_table()) {
    const FieldRule& rule = field.rule;
    if (rule.type != FieldType::kInteger || rule.check != nullptr) continue;
    for (const double bound : {rule.min, rule.max}) {
      if (bound == kNoBound || bound == -kNoBound) continue;
      const int64_t at = static_cast<int64_t>(bound);
      const int64_t beyond = bound == rule.min ? at - 1 : at + 1;
      EXPECT_TRUE(check_field(rule, Json(at)).ok()) << rule.name << at;
      EXPECT_FALSE(check_field(rule, Json(beyond)).ok()) << rule.name << beyond;
    }
  }
}

TEST(FieldTable, UnsupportedUnlessNeutral) {
  for (const auto& field : generation_field_table()) {
    if (field.rule.verdict != Verdict::kUnsupported) continue;
    const Status status = check_field(field.rule, Json::parse(R"([{"x":1}])"));
    EXPECT_EQ(error_detail(status).code, "unsupported_parameter") << field.rule.name;
  }
  EXPECT_TRUE(
      take(R"({"tools":[],"response_format":{"type":"text"},"tool_choice":"none","length_penalty":1.0})",
           kOnChat)
          .ok());
  EXPECT_FALSE(take(R"({"response_format":{"type":"text","x":1}})", kOnChat).ok());
}

TEST(FieldTable, Codes) {
  const auto code = [](const std::string& body) { return error_detail(take(body, kOnChat)).code; };
  EXPECT_EQ(code(R"({"temperature":2.5})"), "decimal_above_max_value");
  EXPECT_EQ(code(R"({"temperature":-1})"), "decimal_below_min_value");
  EXPECT_EQ(code(R"({"n":0})"), "integer_below_min_value");
  EXPECT_EQ(code(R"({"n":1.5})"), "invalid_type");
  EXPECT_EQ(code(R"({"n":"1"})"), "invalid_type");
  EXPECT_EQ(code(R"({"n":true})"), "invalid_type");
  EXPECT_EQ(code(R"({"seed":9223372036854775808})"), "integer_above_max_value");
  EXPECT_EQ(code(R"({"seed":9223372036854775807})"), "");
  EXPECT_EQ(code(R"({"seed":-9223372036854775808})"), "");
  EXPECT_EQ(code(R"({"stop":[""]})"), "invalid_value");
  EXPECT_EQ(code(R"({"priority":-2147483648})"), "");
  EXPECT_EQ(code(R"({"priority":2147483648})"), "integer_above_max_value");
  EXPECT_EQ(code(R"({"priority":"1"})"), "invalid_type");
  EXPECT_EQ(code(R"({"truncate_prompt_tokens":0})"), "integer_below_min_value");
  EXPECT_EQ(code(R"({"truncation_side":"up"})"), "invalid_value");
  EXPECT_EQ(code(R"({"documents":[1]})"), "invalid_type");
  EXPECT_EQ(code(R"({"bad_words":[""]})"), "invalid_value");
}

TEST(FieldTable, StrictRefusesUnknownOnly) {
  std::vector<std::string> ignored;
  EXPECT_TRUE(take(R"({"user":"x"})", kOnChat, &ignored, true).ok());
  EXPECT_EQ(ignored, std::vector<std::string>{"user"});
  EXPECT_EQ(error_detail(take(R"({"mystery":1})", kOnChat, nullptr, true)).code, "unknown_parameter");
}

TEST(FieldTable, AToolChoiceNeedsTools) {
  for (const char* name : {"tool_choice", "function_call"}) {
    for (const char* value : {R"("auto")", R"("required")", R"({"name":"f"})"}) {
      const Status status = take(object(name, value), kOnChat);
      EXPECT_EQ(error_detail(status).param, name);
      EXPECT_EQ(error_detail(status).code, "unsupported_parameter");
    }
    EXPECT_TRUE(take(object(name, R"("none")"), kOnChat).ok());
    EXPECT_TRUE(take(object(name, "null"), kOnChat).ok());
  }
}

TEST(FieldTable, UnknownKeysWithinAFieldAreNamed) {
  const std::string body = R"({"stream_options":{"include_usage":true,"x":1,"gone":null}})";
  std::vector<std::string> ignored;
  EXPECT_TRUE(take(body, kOnChat, &ignored).ok());
  EXPECT_EQ(ignored, std::vector<std::string>{"stream_options.x"});
  const ErrorDetail detail = error_detail(take(body, kOnChat, nullptr, true));
  EXPECT_EQ(detail.param, "stream_options.x");
  EXPECT_EQ(detail.code, "unknown_parameter");
}

TEST(FieldTable, AListOfPromptsIsOfOneKind) {
  EXPECT_TRUE(take(R"({"prompt":[[1],[2]]})", kOnCompletions).ok());
  EXPECT_TRUE(take(R"({"prompt":["a","b"]})", kOnCompletions).ok());
  for (const char* body : {R"({"prompt":[[1],"a"]})", R"({"prompt":["a",[1]]})"}) {
    EXPECT_EQ(error_detail(take(body, kOnCompletions)).param, "prompt[1]");
  }
}

TEST(FieldTable, AnEmptyModelNamesNoModel) {
  EXPECT_EQ(error_detail(take(R"({"model":""})", kOnChat)).param, "model");
}

TEST(FieldTable, AnUnknownFieldIsNamedWithinBounds) {
  const Status odd = take("{\"a\\u001fb\":1}", kOnChat, nullptr, true);
  EXPECT_EQ(error_detail(odd).param,
            "a\x1f"
            "b");
  EXPECT_EQ(error_detail(odd).code, "unknown_parameter");
  EXPECT_NE(status_message(odd).find(R"("a\u001fb")"), std::string::npos) << status_message(odd);
  const Status large = take(object(std::string(100'000, 'k'), "1"), kOnChat, nullptr, true);
  EXPECT_LT(status_message(large).size(), 200U);
  EXPECT_LT(error_detail(large).param.size(), 200U);
  EXPECT_TRUE(status_message(large).find("kkkk") != std::string::npos);
}

TEST(FieldTable, IgnoredNamesAreSafeInAHeader) {
  EXPECT_EQ(ignored_fields_header({"a", "b\r\nX: y", "c,d", "\xc3\xa9"}), "a, b??X:?y, c?d, ??");
  std::vector<std::string> many(1000, std::string(100, 'x'));
  EXPECT_LE(ignored_fields_header(many).size(), 1100U);
}

}  // namespace
}  // namespace omnibus
