// S7: what a template may spend. Every overrun is an INVALID_ARGUMENT that says what ran out; nothing
// crashes.
#include <chrono>

#include <gtest/gtest.h>

#include "interpreter.h"
#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

const Json kMessages = Json::parse(R"({"messages": [{"role": "user", "content": "Hi"}]})");

std::string error_of(const std::string& source, TemplateBudget budget = {}) {
  const auto compiled = ChatTemplate::compile(source);
  if (!compiled.ok()) return status_message(compiled.status());
  RenderOptions options;
  options.budget = budget;
  const auto prompt = (*compiled)->render(kMessages, options);
  if (prompt.ok()) return "";
  EXPECT_EQ(prompt.status().code(), StatusCode::kInvalidArgument) << prompt.status();
  return status_message(prompt.status());
}

std::string repeat(const std::string& part, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += part;
  return out;
}

TEST(Budget, HostileTemplatesEndWithAMessage) {
  const std::pair<std::string, std::string> cases[] = {
      {"{{ range(10**9)|list }}", "Range too big"},
      {"{{ 'a' * 10**9 }}", "longer than 4194304 bytes"},
      {"{{ 'ab' * 10**30 }}", "longer than"},
      {"{{ messages[0].content * 10**9 }}", "longer than"},
      {"{{ ([0] * 10**9)|length }}", "more than"},
      {"{{ [1] * 10**30 }}", "more than"},
      {"{% for a in range(25000) %}{% for b in range(25000) %}{% endfor %}{% endfor %}",
       "more than 1000000 steps"},
      {"{% for a in range(99999) %}{% for b in range(99999) %}{{ 'x' * 4000 }}{% endfor %}{% endfor %}",
       "longer than"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper than 100 levels"},
      {"{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}", ""},
      {"{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
       "longer than"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x + [i] %}{% endfor "
       "%}",
       "more than"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
       "ns.x }}",
       ""},
      {"{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
       "ns.x|tojson }}",
       ""},
      {"{% set a = namespace(x=[]) %}{% set b = namespace(x=[]) %}{% for i in range(60) %}{% set a.x = [a.x, "
       "a.x] %}"
       "{% set b.x = [b.x, b.x] %}{% endfor %}{{ a.x == b.x }}",
       ""},
      {"{% set ns = namespace(x=()) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ "
       "{ns.x: 1} }}",
       "key"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x "
       "}}",
       "too deep"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x "
       "== [ns.x] }}",
       "too deep"},
      {"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", "too deep"},
      {"{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}", "too deep"},
      {"{% set l = [] %}{% set _ = l.append(l) %}{{ l == [l] }}", "too deep"},
      {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "too deep"},
      {"{{ '%1000000000d' % 5 }}", ""},
      {"{{ '%.1000000000f' % 5 }}", ""},
      {"{{ '{:1000000000}'.format('x') }}", "longer than"},
      {"{{ 'x'.center(10**12) }}", "longer than"},
      {"{{ 'x'.zfill(10**12) }}", "longer than"},
      {"{{ 'a\nb'|indent(10**9) }}", "longer than"},
      {"{{ [1]|batch(10**12, 0)|list }}", "more than"},
      {"{{ [1]|slice(10**12)|list }}", "more than"},
      {"{{ 10**10**10 }}", "too large"},
      {"{{ (2**126) * 4 }}", "too large"},
      {"{{ strftime_now('%1000000d') }}", ""},
      {"{{ [messages]|tojson(indent=10**9) }}", "indent"},
      {"{% set ns = namespace(x='a' * 4000000) %}{% set l = [] %}{% for i in range(1000) %}"
       "{% set _ = l.append(ns.x[1:]) %}{% endfor %}",
       "MiB of memory"},
      {"{% for r in [1] recursive %}{{ loop([1]) }}{% endfor %}", "deeper than 100 levels"},
      {"{{ 'aab'.replace('', 'x' * 4000000) }}", "longer than"},
      {"{{ ('a' * 2000000).replace('a', 'xyz') }}", ""},
      {"{{ ('a,' * 2000000).split(',') }}", "more than"},
      {"{{ " + repeat("(", 30000) + "1" + repeat(")", 30000) + " }}", "nested too deeply"},
      {"{{ " + repeat("-", 30000) + "1 }}", "nested too deeply"},
      {"{{ " + repeat("not ", 30000) + "1 }}", "nested too deeply"},
      {"{{ " + repeat("[", 30000), "nested too deeply"},
      {"{{ " + repeat("{1:", 30000), "nested too deeply"},
      {repeat("{% if 1 %}", 30000), "nested too deeply"},
      {repeat("{% for x in y %}", 30000), "nested too deeply"},
      {"{{ " + repeat("1 if 1 else ", 30000) + "1 }}", "nested too deeply"},
      {"{{ x" + repeat("[x", 30000), "nested too deeply"},
      {"{{ 1" + repeat("|d(1", 30000), "nested too deeply"},
      {"{{ 'a'" + repeat(".x", 30000) + " }}", ""},
      {"{{ 'a'" + repeat("|e", 30000) + " }}", "deeper"},
      {"{{ 'a'" + repeat("()", 30000) + " }}", ""},
      {repeat("x", (1 << 20) + 1), "larger than"},
  };
  for (const auto& [source, part] : cases) {
    const auto start = std::chrono::steady_clock::now();
    TemplateBudget patient;  // on a slow machine too the other limits should be what ends it
    patient.milliseconds = 5000;
    const std::string error = error_of(source, patient);
    const std::string shown = source.substr(0, 120);
    EXPECT_FALSE(error.empty()) << shown;
    const bool late = error.find("ran longer than 5000 ms") != std::string::npos;
    EXPECT_TRUE(late || error.find(part) != std::string::npos) << shown << "\n" << error;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << shown;  // a hang
  }
}

TEST(Budget, LongFlatSourcesArePossible) {
  EXPECT_EQ(error_of("{{ 1" + repeat(" + 1", 30000) + " }}"), "");
  EXPECT_EQ(error_of("{{ 'a'" + repeat(" ~ 'b'", 30000) + " }}"), "");
  EXPECT_EQ(error_of("{{ 1" + repeat(" and 1", 30000) + " }}"), "");
  EXPECT_EQ(error_of("{% if 0 %}" + repeat("{% elif 0 %}", 10000) + "{% endif %}"), "");
}

TEST(Budget, EachLimitHolds) {
  const std::string loop = "{% for i in range(1000) %}{{ i }}{% endfor %}";
  EXPECT_EQ(error_of(loop), "");
  TemplateBudget steps;
  steps.steps = 500;
  EXPECT_NE(error_of(loop, steps).find("500 steps"), std::string::npos);
  TemplateBudget bytes;
  bytes.output_bytes = 1000;
  EXPECT_NE(error_of(loop, bytes).find("1000 bytes"), std::string::npos);
  TemplateBudget depth;
  depth.depth = 3;
  const std::string recursion = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}";
  EXPECT_EQ(error_of(recursion), "");
  EXPECT_NE(error_of(recursion, depth).find("3 levels"), std::string::npos);
  TemplateBudget time;
  time.milliseconds = 0;
  EXPECT_NE(error_of("{% for i in range(99999) %}{{ i }}{% endfor %}", time).find("0 ms"), std::string::npos);
}

TEST(Budget, NothingOutsideIsReachable) {
  EXPECT_EQ(error_of("{{ ''.__class__ }}{{ messages.__class__ }}{{ range.__globals__ }}"), "");
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ self.__init__ }}", "{{ cycler.__init__.__globals__ }}",
        "{{ '{0.__class__.__init__}'.format('') }}", "{{ (''|attr('__class__')).x }}",
        "{% include '/etc/passwd' %}", "{% import 'os' as os %}", "{% extends 'x' %}",
        "{{ open('/etc/passwd') }}", "{{ lipsum() }}", "{{ messages.__class__.__base__.__subclasses__() }}"})
    EXPECT_NE(error_of(source), "") << source;
  const auto compiled = ChatTemplate::compile("{{ messages[0].content }}");
  Json variables = kMessages;
  variables["messages"][0]["content"] = "${TMPDIR:-${X}} {{ 7 * 7 }} {% raise %}";
  const auto prompt = (*compiled)->render(variables, {});
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->text, "${TMPDIR:-${X}} {{ 7 * 7 }} {% raise %}");
}

// Law 7: twice the input costs at most 2.6 times the steps.
TEST(Budget, CostGrowsLinearly) {
  const std::string sources[] = {
      testing::read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/templates/02_chatml_tools.jinja"),
      testing::read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/templates/08_thinking.jinja"),
      "{% for m in messages %}{{ m.content|upper|trim|replace('a', 'bb')|tojson }}{% endfor %}",
      "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s ~ m.content[:5] %}{% endfor "
      "%}{{ ns.s }}",
      "{{ messages|map(attribute='content')|unique|sort|join(',') }}",
      "{% for m in messages %}{{ m.content.split('b')|join('c') }}{% endfor %}",
  };
  const auto cost = [](const std::string& source, int messages) {
    Json variables = {{"messages", Json::array()}};
    for (int i = 0; i < messages; ++i)
      variables["messages"].push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                                       {"content", "content " + std::to_string(i) + repeat(" ab", 20)}});
    const auto program = Program::compile(source);
    RenderOptions options;
    options.budget.steps = 1'000'000'000;
    options.budget.milliseconds = 60'000;
    Interpreter interpreter(*program, options);
    interpreter.run(variables);
    return interpreter.budget().steps();
  };
  for (const std::string& source : sources) {
    const int64_t once = cost(source, 200), twice = cost(source, 400);
    EXPECT_LE(static_cast<double>(twice), 2.6 * static_cast<double>(once)) << source;
  }
}

}  // namespace
}  // namespace omnibus::jinja
