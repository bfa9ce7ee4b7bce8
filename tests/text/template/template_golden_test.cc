// Our own templates, which say in other words what the families of the world do: full text as Jinja2 renders
// it.
#include <gtest/gtest.h>

#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

TEST(TemplateGolden, EveryRenderEqualsJinja2) {
  const Json golden = testing::read_golden("templates.json");
  for (const auto& [name, renders] : golden["templates"].items()) {
    const std::string source =
        testing::read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/templates/" + name);
    ASSERT_FALSE(source.empty()) << name;
    for (const auto& [label, expected] : renders.items()) {
      const testing::Outcome got = testing::render_raw(source, golden["conversations"][label]);
      ASSERT_EQ(got.prompt.has_value(), !expected.is_null()) << name << " / " << label << ": " << got.error;
      if (got.prompt) EXPECT_EQ(got.prompt->text, expected.get<std::string>()) << name << " / " << label;
    }
  }
  EXPECT_GE(golden["templates"].size(), 15u);
}

TEST(TemplateGolden, TheTemplateOfFilesWithoutOne) {
  const auto compiled = ChatTemplate::compile(kChatMlTemplate);
  ASSERT_TRUE(compiled.ok());
  const Json variables =
      Json::parse(R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]})");
  const auto prompt = (*compiled)->render(variables, testing::golden_options());
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->text,
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace omnibus::jinja
