// Small expressions and statements, hand-made and random: text equal to Jinja2's, or an error where it has
// one.
#include <gtest/gtest.h>

#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

TEST(ExpressionGolden, EveryCaseEqualsJinja2) {
  const Json golden = testing::read_golden("expressions.json", "OMNIBUS_TEMPLATE_EXPRESSIONS");
  size_t errors = 0;
  for (const Json& entry : golden["cases"]) {
    const std::string source = entry[0];
    const testing::Outcome got = testing::render_raw(source, golden["variables"]);
    if (entry[1].is_null()) {
      ++errors;
      EXPECT_FALSE(got.prompt) << source << "\nJinja2 raises, we render:\n" << got.prompt->text;
    } else if (!got.prompt) {
      ADD_FAILURE() << source << "\nexpected: " << entry[1] << "\nerror: " << got.error;
    } else {
      EXPECT_EQ(got.prompt->text, entry[1].get<std::string>()) << source;
    }
  }
  // Both kinds are there.
  EXPECT_GT(golden["cases"].size(), 900u);
  EXPECT_GT(errors, 100u);
  EXPECT_LT(errors, golden["cases"].size() / 2);
}

}  // namespace
}  // namespace omnibus::jinja
