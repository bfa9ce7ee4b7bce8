// Other people's templates through the public door, beyond the goldens: constructs that other engines could
// not compile (B46), long conversations within the budget, and what keeps earlier reasoning.
#include <filesystem>

#include <gtest/gtest.h>

#include "text/template/golden.h"

namespace omnibus {
namespace {

using Json = nlohmann::ordered_json;

std::string folder_of_templates() {
  const char* folder = std::getenv("OMNIBUS_TEMPLATES_DIR");
  return folder == nullptr ? "" : folder;
}

StatusOr<std::string> render(const std::string& source, Json variables) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto compiled, ChatTemplate::compile(source));
  RenderOptions options = jinja::testing::golden_options();
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  OMNIBUS_ASSIGN_OR_RETURN(const RenderedPrompt prompt, compiled->render(variables, options));
  return prompt.text;
}

Json one_turn() { return {{"messages", {{{"role", "user"}, {"content", "Hi é"}}}}}; }

TEST(B46, Generation) {
  EXPECT_EQ(*render("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}!{% endfor %}",
                    one_turn()),
            "Hi é!");
}

TEST(B46, TojsonWithEnsureAscii) {
  EXPECT_EQ(*render("{{ messages[0].content | tojson(ensure_ascii=False) }}", one_turn()), "\"Hi é\"");
  EXPECT_EQ(*render("{{ messages[0].content | tojson(ensure_ascii=True) }}", one_turn()), "\"Hi \\u00e9\"");
}

TEST(B46, StrftimeNow) {
  EXPECT_EQ(*render("{{ strftime_now('%d %B %Y') }}", one_turn()), "17 July 2025");  // golden_options' moment
}

TEST(B46, Rejectattr) {
  Json variables = one_turn();
  variables["messages"].push_back({{"role", "assistant"}, {"content", "Yes"}});
  EXPECT_EQ(
      *render("{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='content') | join }}",
              variables),
      "Yes");
}

TEST(B46, TheTemplatesThatWereReported) {
  const std::filesystem::path folder = folder_of_templates();
  if (folder.empty()) GTEST_SKIP() << "OMNIBUS_TEMPLATES_DIR is not set";
  for (const char* name : {"HuggingFaceTB-SmolLM3-3B.jinja", "Qwen-QwQ-32B.jinja", "Qwen-Qwen3-0.6B.jinja"}) {
    const auto text = render(jinja::testing::read_file(folder / name), one_turn());
    ASSERT_TRUE(text.ok()) << name << ": " << text.status();
    EXPECT_NE(text->find("Hi é"), std::string::npos) << name;
  }
}

Json long_conversation(int messages) {
  Json out;
  Json& list = out["messages"] = Json::array();
  list.push_back({{"role", "system"}, {"content", "You are helpful."}});
  for (int i = 0; list.size() < static_cast<size_t>(messages); ++i) {
    const std::string id = "call" + std::to_string(10000 + i);
    list.push_back({{"role", "user"}, {"content", "Question " + std::to_string(i)}});
    const Json call = {{"id", id},
                       {"type", "function"},
                       {"function", {{"name", "look_up"}, {"arguments", {{"what", "thing"}, {"count", i}}}}}};
    list.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}});
    list.push_back(
        {{"role", "tool"}, {"name", "look_up"}, {"tool_call_id", id}, {"content", "{\"found\": true}"}});
    list.push_back({{"role", "assistant"}, {"content", "Answer " + std::to_string(i)}});
  }
  list.push_back({{"role", "user"}, {"content", "The end?"}});
  Json& tools = out["tools"] = Json::array();
  for (int i = 0; i < 8; ++i) {
    tools.push_back(
        {{"type", "function"},
         {"function",
          {{"name", i == 0 ? "look_up" : "tool_" + std::to_string(i)},
           {"description", "Looks something up."},
           {"parameters",
            {{"type", "object"},
             {"properties",
              {{"what", {{"type", "string"}, {"description", "What."}}}, {"count", {{"type", "integer"}}}}},
             {"required", {"what"}}}}}}});
  }
  return out;
}

// 800 messages with tools: no template may run out of steps, not even those that look through all messages
// for each.
TEST(LongConversations, FitIntoTheBudget) {
  const std::filesystem::path folder = folder_of_templates();
  if (folder.empty()) GTEST_SKIP() << "OMNIBUS_TEMPLATES_DIR is not set";
  int rendered = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string source = jinja::testing::read_file(entry.path());
    const bool takes_short = render(source, long_conversation(8)).ok();
    const auto text = render(source, long_conversation(800));
    EXPECT_EQ(text.ok(), takes_short) << entry.path().filename() << ": " << text.status();
    ++(text.ok() ? rendered : refused);
  }
  EXPECT_GT(rendered, 50);
  std::printf("800 messages with tools: %d templates render them, %d refuse such conversations\n", rendered,
              refused);
}

// Earlier reasoning reaches the template under the key that it reads, whichever the client used.
TEST(EarlierReasoning, ComesUnderTheTemplatesKey) {
  for (const char* reads : {"reasoning_content", "reasoning", "thinking"}) {
    for (const std::string source :
         {std::string("{{ messages[0].") + reads + " }}", std::string("{{ messages[0]['") + reads + "'] }}",
          std::string("{{ messages[0].get(\"") + reads + "\") }}"}) {
      for (const char* sent : {"reasoning_content", "reasoning", "thinking"}) {
        const Json variables = {
            {"messages", {{{"role", "assistant"}, {"content", "a"}, {sent, "zq thought"}}}}};
        const auto text = render(source, variables);
        ASSERT_TRUE(text.ok()) << text.status();
        EXPECT_EQ(*text, "zq thought") << source << " from " << sent;
      }
    }
  }
}

TEST(EarlierReasoning, IsNotPutWhereNobodyReadsIt) {
  const Json variables = {{"messages", {{{"role", "assistant"}, {"content", "a"}, {"reasoning", "zq"}}}}};
  EXPECT_EQ(*render("{{ messages[0] | tojson }}{# reasoning_contents #}", variables),
            R"({"role": "assistant", "content": "a", "reasoning": "zq"})");
}

}  // namespace
}  // namespace omnibus
