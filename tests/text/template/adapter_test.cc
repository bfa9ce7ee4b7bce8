// OpenAI's messages meet templates that expect other shapes.
#include <gtest/gtest.h>

#include "message_adapter.h"
#include "text/template/golden.h"

namespace omnibus {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPlain = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
constexpr const char* kParts =
    "{% for m in messages %}[{{ m.role }}:{% for p in m.content %}{{ p.text + ';' }}{% endfor %}]{% endfor "
    "%}";
constexpr const char* kBoth =
    "{% for m in messages %}[{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{{ p.text if p.type == 'text' else '<' + p.type + '>' }};{% endfor %}{% endif %}]{% endfor %}";
constexpr const char* kObjectArguments =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments.items() %}"
    "{{ k }}={{ v }}{% endfor %}{% endfor %}{{ m.content }};{% endfor %}";
constexpr const char* kJsonArguments =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}"
    "{{ m.content }};{% endfor %}";
constexpr const char* kTextArguments =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ '```' + c.function.arguments + '```' }}{% "
    "endfor %}"
    "{{ m.content if m.content is not none }};{% endfor %}";

std::string render(const char* source, const char* messages) {
  const auto compiled = ChatTemplate::compile(source);
  if (!compiled.ok()) return "compile: " + status_message(compiled.status());
  const auto prompt = (*compiled)->render({{"messages", Json::parse(messages)}}, {});
  if (!prompt.ok()) return error_detail(prompt.status()).param + "! " + status_message(prompt.status());
  return prompt->text;
}

TEST(MessageAdapter, PartsAreJoinedForTemplatesThatPrintStrings) {
  constexpr const char* kMessages =
      R"([{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}])";
  EXPECT_EQ(render(kPlain, kMessages), "[user:onetwo]");
  EXPECT_EQ(render(kParts, kMessages), "[user:one;two;]");
  EXPECT_EQ(render(kBoth, kMessages), "[one;two;]");
}

TEST(MessageAdapter, StringsBecomePartsForTemplatesThatWalkThem) {
  constexpr const char* kMessages = R"([{"role":"user","content":"one"}])";
  EXPECT_EQ(render(kPlain, kMessages), "[user:one]");
  EXPECT_EQ(render(kParts, kMessages), "[user:one;]");
  EXPECT_EQ(render(kBoth, kMessages), "[one]");
}

TEST(MessageAdapter, APartThatIsNoTextIsRefusedByPlace) {
  constexpr const char* kMessages =
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}])";
  EXPECT_NE(render(kPlain, kMessages).find("messages[0].content[1]! "), std::string::npos)
      << render(kPlain, kMessages);
  EXPECT_EQ(render(kBoth, kMessages), "[a;<image_url>;]");
}

TEST(MessageAdapter, ArgumentsComeInTheFormThatTheTemplateTakes) {
  constexpr const char* kText =
      R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}])";
  constexpr const char* kObject =
      R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"a":1}}}]}])";
  EXPECT_EQ(render(kObjectArguments, kText), "a=1;");
  EXPECT_EQ(render(kObjectArguments, kObject), "a=1;");
  EXPECT_EQ(render(kJsonArguments, kText), "{\"a\": 1};");
  EXPECT_EQ(render(kJsonArguments, kObject), "{\"a\": 1};");
  EXPECT_EQ(render(kTextArguments, kText), "```{\"a\": 1}```;");
  EXPECT_EQ(render(kTextArguments, kObject), "```{\"a\":1}```;");
}

TEST(MessageAdapter, ArgumentsThatAreNoObjectStayText) {
  constexpr const char* kMessages =
      R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\": "}}]}])";
  EXPECT_EQ(render(kJsonArguments, kMessages), "\"{\\\"a\\\": \";");
}

TEST(MessageAdapter, NullContentBecomesEmptyWhereNoneWouldBePrinted) {
  constexpr const char* kMessages =
      R"([{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}])";
  EXPECT_EQ(render(kJsonArguments, kMessages), "{\"a\": 1};");
  EXPECT_EQ(render(kTextArguments, kMessages), "```{\"a\": 1}```;");
}

TEST(ChatTemplateApi, VariablesAreChecked) {
  const auto compiled = ChatTemplate::compile("{{ messages|length }}{{ x }}");
  ASSERT_TRUE(compiled.ok());
  const auto param_of = [&](const Json& variables) {
    const auto prompt = (*compiled)->render(variables, {});
    return prompt.ok() ? std::string("ok") : error_detail(prompt.status()).param;
  };
  EXPECT_EQ(param_of({{"messages", Json::array()}, {"x", 1}}), "ok");
  EXPECT_EQ(param_of({{"x", 1}}), "messages");
  EXPECT_EQ(param_of({{"messages", "text"}}), "messages");
  for (const char* reserved : {"bos_token", "eos_token", "add_generation_prompt", "raise_exception",
                               "namespace", "range", "strftime_now", "dict", "joiner", "cycler"})
    EXPECT_EQ(param_of({{"messages", Json::array()}, {reserved, "x"}}), reserved);
  EXPECT_FALSE((*compiled)->render(Json::array(), {}).ok());
}

TEST(ChatTemplateApi, ErrorsSayWhatAndWhere) {
  EXPECT_EQ(status_message(ChatTemplate::compile("a\nb{% if %}").status()),
            "chat template: line 2: Expected an expression, got '%}'");
  EXPECT_NE(status_message(ChatTemplate::compile("ok \xff").status()).find("not valid UTF-8"),
            std::string::npos);
  EXPECT_NE(status_message(ChatTemplate::compile("{{ x|shout }}").status()).find("No filter named 'shout'"),
            std::string::npos);
  const auto raising = ChatTemplate::compile("{{ raise_exception('Turns must alternate') }}");
  const Status raised = (*raising)->render({{"messages", Json::array()}}, {}).status();
  EXPECT_EQ(raised.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status_message(raised), "Turns must alternate");
  EXPECT_EQ(error_detail(raised).http, 400);
  const auto wrong = ChatTemplate::compile("\n\n{{ messages[0].role.name.first }}");
  EXPECT_NE(status_message((*wrong)->render({{"messages", {{{"role", "user"}}}}}, {}).status())
                .find("line 3: 'str object' has no attribute 'name'"),
            std::string::npos);
}

TEST(ChatTemplateApi, TheOptionsAreTheTemplatesVariables) {
  const auto compiled =
      ChatTemplate::compile("{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}|{{ k }}");
  RenderOptions options;
  options.bos_token = "B";
  options.eos_token = "E";
  options.add_generation_prompt = false;
  const auto prompt = (*compiled)->render({{"messages", Json::array()}, {"k", {1, nullptr}}}, options);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->text, "B|E|False|[1, None]");
  EXPECT_EQ((*compiled)->source(), "{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}|{{ k }}");
}

}  // namespace
}  // namespace omnibus
