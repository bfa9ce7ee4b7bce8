// Case mappings and character classes of every character that Python's Unicode knows.
#include "unicode.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

// Calls f for every number in [first, last, first, last, …].
void for_ranges(const Json& ranges, const std::function<void(int32_t)>& f) {
  for (size_t i = 0; i + 1 < ranges.size(); i += 2)
    for (int32_t c = ranges[i]; c <= ranges[i + 1].get<int32_t>(); ++c) f(c);
}

class UnicodeTable : public ::testing::Test {
 protected:
  const Json golden_ = testing::read_golden("unicode.json");

  void check_mapping(const char* name, void (*map)(std::string&, int32_t)) {
    int wrong = 0;
    for_ranges(golden_["assigned"], [&](int32_t c) {
      std::string self, got;
      append_utf8(self, c);
      map(got, c);
      const std::string expected = golden_[name].value(std::to_string(c), self);
      if (got != expected && ++wrong <= 20)
        ADD_FAILURE() << name << " of U+" << std::hex << c << ": expected " << expected << ", got " << got;
    });
    EXPECT_EQ(wrong, 0) << name;
  }

  void check_class(const char* name, bool (*is)(int32_t)) {
    std::set<int32_t> members;
    for_ranges(golden_[name], [&](int32_t c) { members.insert(c); });
    int wrong = 0;
    for_ranges(golden_["assigned"], [&](int32_t c) {
      if (is == is_numeric && is_alpha(c)) return;  // the Chinese numerals
      if (is(c) != (members.count(c) != 0) && ++wrong <= 20)
        ADD_FAILURE() << name << " of U+" << std::hex << c << " should be " << !is(c);
    });
    EXPECT_EQ(wrong, 0) << name;
  }
};

TEST_F(UnicodeTable, CaseMappings) {
  check_mapping("upper", append_upper);
  check_mapping("title", append_title);
  check_mapping("casefold", append_casefold);
  check_mapping("lower", [](std::string& out, int32_t c) {
    std::string one;
    append_utf8(one, c);
    append_lower(out, one, 0);
  });
}

TEST_F(UnicodeTable, Classes) {
  check_class("isspace", is_space);
  check_class("isalpha", is_alpha);
  check_class("isdecimal", is_decimal);
  check_class("isdigit", is_digit);
  check_class("isnumeric", is_numeric);
  check_class("isupper", is_upper);
  check_class("islower", is_lower);
  check_class("isprintable", is_printable);
}

TEST(Unicode, WhatIsNoUtf8CountsByteByByte) {
  const std::string text = "a\xff\xc3(\xe2\x82z\xf0\x9f\x98\x80";
  EXPECT_EQ(count_code_points(text), 8u);
  EXPECT_EQ(find_invalid_utf8(text), 1u);
  EXPECT_EQ(find_invalid_utf8("plain \xc3\xa9"), std::string_view::npos);
  // Walking backwards meets the same borders.
  size_t end = text.size(), count = 0;
  for (; end > 0; ++count) end -= decode_before(text, end).bytes;
  EXPECT_EQ(count, 8u);
}

}  // namespace
}  // namespace omnibus::jinja
