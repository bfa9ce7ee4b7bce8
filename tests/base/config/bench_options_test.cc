// `bench serve`: a command of two words, and what its options mean together.
#include "omnibus/base/config/bench_options.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/base/config/commands.h"

namespace omnibus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Args = std::vector<std::string>;
using Env = std::map<std::string, std::string>;

StatusOr<ParsedCommand> parse(const Args& args, const Env& env = {}) {
  return parse_command_line(args, [env](const std::string& name) -> std::optional<std::string> {
    const auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
}

BenchServeConfig bench(Args args, const Env& env = {}) {
  args.insert(args.begin(), {"bench", "serve"});
  const auto command = parse(args, env);
  EXPECT_TRUE(command.ok()) << command.status();
  if (!command.ok() || !std::holds_alternative<BenchServeConfig>(*command)) return {};
  return std::get<BenchServeConfig>(*command);
}

std::string error(const Args& args, const Env& env = {}) {
  const auto command = parse(args, env);
  EXPECT_FALSE(command.ok()) << "was accepted: " << ::testing::PrintToString(args);
  return status_message(command.status());
}

std::string help(const Args& args) {
  const auto command = parse(args);
  if (!command.ok() || !std::holds_alternative<HelpConfig>(*command)) return "no help";
  return std::get<HelpConfig>(*command).text;
}

class TomlFile {
 public:
  explicit TomlFile(const std::string& text) : path_(::testing::TempDir() + "omnibus_bench_options.toml") {
    std::ofstream(path_) << text;
  }
  ~TomlFile() { std::filesystem::remove(path_); }
  TomlFile(const TomlFile&) = delete;
  TomlFile& operator=(const TomlFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(TwoWordCommand, HasItsOwnFlagsAndHelp) {
  EXPECT_EQ(bench({"--num_prompts", "7"}).num_prompts, 7);
  EXPECT_THAT(help({"bench", "serve", "--help"}), HasSubstr("--num-prompts"));
  EXPECT_THAT(help({"bench", "serve", "--help"}), HasSubstr("OMNIBUS_BENCH_SERVE_<NAME>"));
  EXPECT_THAT(help({"bench", "serve", "--help"}), HasSubstr("[bench.serve]"));
  EXPECT_THAT(help({"serve", "--help"}), HasSubstr("OMNIBUS_<NAME>"));
  EXPECT_EQ(help({"help", "bench", "serve"}), help({"bench", "serve", "-h"}));
  EXPECT_THAT(help({"bench", "--help"}), HasSubstr("serve"));
  EXPECT_EQ(help({"help", "bench"}), help({"bench", "-h"}));
  EXPECT_THAT(help({"--help"}), HasSubstr("bench"));
}

TEST(TwoWordCommand, WrongWordsAreNamed) {
  EXPECT_THAT(error({"bench"}), HasSubstr("'bench' is not a whole command"));
  EXPECT_THAT(error({"bench", "swim"}), HasSubstr("unknown command 'bench swim'"));
  EXPECT_THAT(error({"bench serve"}), HasSubstr("bench serve"));
  EXPECT_THAT(error({"bench", "serve", "--port", "1"}), HasSubstr("omnibus bench serve --help"));
  EXPECT_THAT(error({"bench", "serve", "stray"}), HasSubstr("stray"));
}

// What is meant for `serve` does not reach it, nor the other way round.
TEST(TwoWordCommand, VariablesAreItsOwn) {
  const Env env = {{"OMNIBUS_MODEL", "m.gguf"}, {"OMNIBUS_SEED", "5"}, {"OMNIBUS_BENCH_SERVE_SEED", "6"}};
  EXPECT_EQ(bench({}, env).model, "");
  EXPECT_EQ(bench({}, env).seed, 6U);
  EXPECT_EQ(bench({"--seed", "7"}, env).seed, 7U);
  const auto serve = parse({"serve"}, env);
  ASSERT_TRUE(serve.ok());
  EXPECT_EQ(std::get<ServeConfig>(*serve).engine.seed, 5U);
  EXPECT_THAT(error({"bench", "serve"}, {{"OMNIBUS_BENCH_SERVE_NUM_PROMPTS", "x"}}),
              HasSubstr("OMNIBUS_BENCH_SERVE_NUM_PROMPTS"));
  const Args names = {"OMNIBUS_BENCH_SERVE_SEED", "OMNIBUS_NUM_PROMPTS", "OMNIBUS_BENCH_SERVE_PORT"};
  EXPECT_EQ(unknown_variables(names), (Args{"OMNIBUS_NUM_PROMPTS", "OMNIBUS_BENCH_SERVE_PORT"}));
}

TEST(TwoWordCommand, OnlyItsTableInAFileSpeaksToIt) {
  const TomlFile file(
      "model = 'm.gguf'\nport = 7\n[bench.serve]\nseed = 3\nmetric-percentiles = ['50', '75']\n");
  const BenchServeConfig config = bench({"--config", file.path()});
  EXPECT_EQ(config.model, "");
  EXPECT_EQ(config.seed, 3U);
  EXPECT_EQ(config.percentiles, (std::vector<double>{50, 75}));
  const auto serve = parse({"serve", "--config", file.path()});
  ASSERT_TRUE(serve.ok()) << serve.status();
  EXPECT_EQ(std::get<ServeConfig>(*serve).http.port, 7);
  EXPECT_FALSE(std::get<ServeConfig>(*serve).engine.seed);
}

TEST(TwoWordCommand, WrongKeysOfAFileAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[bench.serve]\nport = 1\n", "line 2: unknown key 'bench.serve.port'"},
      {"[bench]\nseed = 1\n", "line 2: unknown key 'bench.seed'"},
      {"[bench.swim]\nseed = 1\n", "unknown table [bench.swim]"},
      {"num-prompts = 1\n", "line 1: unknown key 'num-prompts'"},
      {"[serve.bench]\nseed = 1\n", "unknown table [serve.bench]"},
  };
  for (const auto& [text, named] : cases) {
    const TomlFile file(text);
    EXPECT_THAT(error({"bench", "serve", "--config", file.path()}), HasSubstr(named)) << text;
  }
}

TEST(BenchOptions, Defaults) {
  const BenchServeConfig config = bench({});
  EXPECT_TRUE(std::isinf(config.request_rate));
  EXPECT_EQ(config.endpoint, "/v1/completions");
  EXPECT_EQ(config.percentiles, (std::vector<double>{90, 95, 99}));
  EXPECT_EQ(config.metrics.size(), 4U);
  EXPECT_TRUE(config.slo.empty());
  EXPECT_FALSE(config.save_result);
  EXPECT_EQ(bench({"--backend", "openai-chat"}).endpoint, "/v1/chat/completions");
  EXPECT_EQ(bench({"--backend", "openai-chat", "--endpoint", "/x"}).endpoint, "/x");
}

TEST(BenchOptions, RatesMayBeInfinite) {
  EXPECT_EQ(bench({"--request-rate", "2.5"}).request_rate, 2.5);
  EXPECT_TRUE(std::isinf(bench({"--request-rate", "inf"}).request_rate));
  EXPECT_TRUE(std::isinf(bench({"--burstiness", "inf"}).burstiness));
  for (const char* bad : {"0", "-1", "nan", "infinity", "", "1x", "1e-9"}) {
    EXPECT_THAT(error({"bench", "serve", "--request-rate", bad}), HasSubstr("--request-rate")) << bad;
  }
}

TEST(BenchOptions, LimitsOfGoodRequests) {
  const BenchServeConfig config = bench({"--goodput", "ttft:500,e2el:2000.5", "--goodput", "tpot:50"});
  EXPECT_EQ(config.slo.ttft_ms, 500);
  EXPECT_EQ(config.slo.tpot_ms, 50);
  EXPECT_EQ(config.slo.e2el_ms, 2000.5);
  for (const char* bad : {"ttft", "ttft:", "ttft:x", "itl:5", "ttft:-1", "ttft:1,ttft:2", "ttft:inf", ""}) {
    EXPECT_THAT(error({"bench", "serve", "--goodput", bad}), HasSubstr("--goodput")) << bad;
  }
}

// An answer that comes whole has no first token: it would be good by a time that was never measured.
TEST(BenchOptions, LimitsThatNeedAStreamAreRefusedWithoutOne) {
  for (const char* limit : {"ttft:500", "tpot:50", "e2el:2000,tpot:50"}) {
    EXPECT_THAT(error({"bench", "serve", "--no-stream", "--goodput", limit}),
                AllOf(HasSubstr("--goodput"), HasSubstr("--no-stream")))
        << limit;
  }
  EXPECT_EQ(bench({"--no-stream", "--goodput", "e2el:2000"}).slo.e2el_ms, 2000);
}

TEST(BenchOptions, ListsAndHeadersAreChecked) {
  EXPECT_THAT(error({"bench", "serve", "--metric-percentiles", "99,101"}), HasSubstr("'101'"));
  EXPECT_THAT(error({"bench", "serve", "--metric-percentiles", "0"}), HasSubstr("'0'"));
  EXPECT_THAT(error({"bench", "serve", "--percentile-metrics", "ttft,speed"}), HasSubstr("'speed'"));
  EXPECT_THAT(error({"bench", "serve", "--extra-body", "[1]"}), HasSubstr("--extra-body"));
  EXPECT_THAT(error({"bench", "serve", "--endpoint", "v1"}), HasSubstr("--endpoint"));
  const BenchServeConfig config = bench({"--header", "X-A: b: c", "--header", "Y:"});
  EXPECT_EQ(config.headers, (std::vector<std::pair<std::string, std::string>>{{"X-A", "b: c"}, {"Y", ""}}));
  for (const char* bad : {"x", ": y", "a b: c", "a: b\r\nc: d"}) {
    EXPECT_THAT(error({"bench", "serve", "--header", bad}), HasSubstr("--header")) << bad;
  }
}

TEST(BenchOptions, TheKeyComesFromTheEnvironment) {
  EXPECT_EQ(bench({}, {{"OPENAI_API_KEY", "sk-x"}}).api_key, "sk-x");
  EXPECT_EQ(bench({}).api_key, "");
}

TEST(BenchOptions, AFileNameOrRecordsMeanThatAFileIsWritten) {
  EXPECT_TRUE(bench({"--result-filename", "x.json"}).save_result);
  EXPECT_TRUE(bench({"--save-detailed"}).save_result);
}

}  // namespace
}  // namespace omnibus
