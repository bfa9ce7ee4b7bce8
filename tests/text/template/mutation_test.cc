// Broken and random templates: an answer or an error within the budget, never a crash. Prints its seed.
#include <random>

#include <gtest/gtest.h>

#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

uint64_t seed_of_run() {
  const char* given = std::getenv("OMNIBUS_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20250717;
  std::printf("seed %llu (OMNIBUS_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::string mutated(std::string source, std::mt19937_64& random, const std::vector<std::string>& others) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % (n == 0 ? 1 : n)); };
  static const char* const kPieces[] = {
      "{%",         "%}",   "{{", "}}",   "{#",          "#}",           "-",    "|",     "(",    ")",
      "[",          "]",    "'",  "\"",   " if ",        " else ",       " is ", " not ", " in ", "~",
      "**",         "loop", ".x", "[1:]", "{% endif %}", "{% endfor %}", "\\",   "\n",    "\xff", "|tojson",
      "99999999999"};
  for (size_t n = 1 + below(4); n > 0; --n) {
    const size_t at = below(source.size());
    switch (below(5)) {
      case 0:
        source[at] = static_cast<char>(random());
        break;
      case 1:
        source.erase(at, 1 + below(20));
        break;
      case 2:
        source.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        source.insert(at, source.substr(below(source.size()), below(40)));
        break;
      default: {
        const std::string& other = others[below(others.size())];
        source.insert(at, other.substr(below(other.size()), below(60)));
      }
    }
    if (source.empty()) source = " ";
  }
  return source;
}

TEST(Mutation, BrokenTemplatesGiveAnswersOrErrors) {
  std::mt19937_64 random(seed_of_run());
  const Json golden = testing::read_golden("templates.json"),
             expressions = testing::read_golden("expressions.json");
  std::vector<std::string> sources;
  for (const auto& [name, unused] : golden["templates"].items())
    sources.push_back(testing::read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/templates/" + name));
  for (const Json& entry : expressions["cases"]) sources.push_back(entry[0]);
  Json variables = expressions["variables"];
  for (const auto& [name, value] : golden["conversations"]["tools"].items()) variables[name] = value;
  RenderOptions options = testing::golden_options();
  options.budget.steps = 20'000;
  options.budget.output_bytes = 64 << 10;
  int rendered = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string source = mutated(sources[random() % sources.size()], random, sources);
    const testing::Outcome got = testing::render_raw(source, variables, options);
    ++(got.prompt ? rendered : refused);
    if (got.prompt) {
      ASSERT_LE(got.prompt->text.size(), 64u << 10) << source;
      const size_t end = got.prompt->ranges.empty() ? 0 : got.prompt->ranges.back().end;
      ASSERT_EQ(end, got.prompt->text.size()) << source;
    } else {
      ASSERT_FALSE(got.error.empty()) << source;
    }
  }
  // Both happen, or the mutations are no good.
  EXPECT_GT(rendered, 500);
  EXPECT_GT(refused, 500);
}

// Rendering is a function: the same inputs give the same text and ranges, also from a shared program.
TEST(Mutation, RendersAreRepeatable) {
  const Json golden = testing::read_golden("templates.json");
  for (const auto& [name, renders] : golden["templates"].items()) {
    const auto compiled = ChatTemplate::compile(
        testing::read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/templates/" + name));
    ASSERT_TRUE(compiled.ok()) << name << ": " << compiled.status();
    Json variables = golden["conversations"]["tools"];
    for (const char* reserved : {"bos_token", "eos_token", "add_generation_prompt"})
      variables.erase(reserved);
    const auto first = (*compiled)->render(variables, testing::golden_options());
    const auto second = (*compiled)->render(variables, testing::golden_options());
    ASSERT_EQ(first.ok(), second.ok()) << name;
    if (!first.ok()) continue;
    EXPECT_EQ(first->text, second->text);
    ASSERT_EQ(first->ranges.size(), second->ranges.size());
  }
}

}  // namespace
}  // namespace omnibus::jinja
