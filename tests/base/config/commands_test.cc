#include "omnibus/base/config/commands.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "omnibus/base/config/admin_place.h"

namespace omnibus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Args = std::vector<std::string>;
using Env = std::map<std::string, std::string>;

StatusOr<ParsedCommand> parse(const Args& args, Env env = {}) {
  return parse_command_line(args, [env](const std::string& name) -> std::optional<std::string> {
    const auto it = env.find(name);
    if (it == env.end()) return std::nullopt;
    return it->second;
  });
}

ServeConfig serve(Args args, const Env& env = {}) {
  args.insert(args.begin(), "serve");
  const auto command = parse(args, env);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? std::get<ServeConfig>(*command) : ServeConfig{};
}

std::string error(const Args& args, const Env& env = {}) {
  const auto command = parse(args, env);
  EXPECT_FALSE(command.ok()) << "was accepted: " << ::testing::PrintToString(args);
  EXPECT_EQ(command.status().code(), StatusCode::kInvalidArgument);
  return status_message(command.status());
}

class ConfigFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "omnibus_" + info->name() + ".toml";
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST(Commands, EverySourceAlone) {
  EXPECT_EQ(serve({}).http.port, 8000);
  EXPECT_EQ(serve({"--port", "1"}).http.port, 1);
  EXPECT_EQ(serve({"--port=2"}).http.port, 2);
  EXPECT_EQ(serve({}, {{"OMNIBUS_PORT", "3"}}).http.port, 3);
}

// Law: for each subset of {flag, environment, file} the strongest one present counts.
TEST_F(ConfigFileTest, PrecedenceForEverySubsetOfSources) {
  const std::string path = write("port = 30\nstrict_fields = true\n");
  for (int mask = 0; mask < 8; ++mask) {
    Args args;
    Env env;
    int port = 8000;
    bool strict = false;
    if (mask & 1) {
      args = {"--config", path};
      port = 30;
      strict = true;
    }
    if (mask & 2) {
      env = {{"OMNIBUS_PORT", "20"}, {"OMNIBUS_STRICT_FIELDS", "false"}};
      port = 20;
      strict = false;
    }
    if (mask & 4) {
      args.insert(args.end(), {"--port", "10", "--strict-fields"});
      port = 10;
      strict = true;
    }
    const auto config = serve(args, env);
    EXPECT_EQ(config.http.port, port) << "sources " << mask;
    EXPECT_EQ(config.strict_fields, strict) << "sources " << mask;
  }
}

TEST_F(ConfigFileTest, FileFromEnvironmentUnlessFlagNamesOne) {
  const std::string path = write("port = 30\n");
  EXPECT_EQ(serve({}, {{"OMNIBUS_CONFIG", path}}).http.port, 30);
  EXPECT_THAT(error({"serve", "--config", "/no/such.toml"}, {{"OMNIBUS_CONFIG", path}}),
              HasSubstr("'/no/such.toml'"));
}

TEST_F(ConfigFileTest, SectionsDottedKeysListsAndForeignSections) {
  const std::string path = write(
      "max-num-seqs = 3  # top level\n"
      "temperature = 0.5  # only run has it\n"
      "[serve]\nmodel = 'm.gguf'\nmax_num_seqs = 4\nserved-model-name = [\n 'a',\n 'b',\n]\n"
      "[serve.log]\nlevel = 'error'\n"
      "[run]\nmax-model-len = 5\n");
  const auto config = serve({"--config", path});
  EXPECT_EQ(config.engine.max_num_seqs, 4);
  EXPECT_EQ(config.model, "m.gguf");
  EXPECT_EQ(config.served_model_names, (Args{"a", "b"}));
  EXPECT_EQ(config.log.level, LogLevel::kError);
  const auto command = parse({"run", "--config", path});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(std::get<RunConfig>(*command).engine.max_model_len, 5);
  EXPECT_EQ(std::get<RunConfig>(*command).temperature, 0.5);
  EXPECT_EQ(std::get<RunConfig>(*command).model, kDefaultModel);
}

TEST_F(ConfigFileTest, MistakesNameFileLineAndKey) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"port = 1\nprot = 2\n", "line 2: unknown key 'prot'"},
      {"[serve]\nno-such = 1\n", "line 2: unknown key 'serve.no-such'"},
      {"[server]\nport = 1\n", "line 1: unknown table [server]"},
      {"\nport = 70000\n", "line 2: port: 70000 is not within 0 and 65535"},
      {"port = '8000x'\n", "line 1: port: '8000x' is not a whole number"},
      {"port = [1, 2]\n", "line 1: port: takes one value"},
      {"port = 1.5\n", "line 1: port: '1.5' is not a whole number"},
      {"api-key = []\n", "line 1: api-key: an empty array"},
      {"port = 2024-01-01\n", "line 1: port: only text, numbers"},
      {"port = 1 junk\n", "line 1: "},
      {"max-num-seqs = 1\nmax_num_seqs = 2\n", "'max-num-seqs' is set twice"},
      {"strict-fields = 'maybe'\n", "'maybe' is not true or false"},
  };
  for (const auto& c : cases) {
    const std::string path = write(c.text);
    const std::string message = error({"serve", "--config", path});
    EXPECT_THAT(message, HasSubstr(c.says)) << c.text;
    EXPECT_THAT(message, HasSubstr(path)) << c.text;
  }
}

TEST(Commands, EmptyVariableCountsAsUnset) { EXPECT_EQ(serve({}, {{"OMNIBUS_PORT", ""}}).http.port, 8000); }

TEST(Commands, SwitchesInEverySpelling) {
  EXPECT_TRUE(serve({"--strict-fields"}).strict_fields);
  EXPECT_TRUE(serve({"--strict_fields"}).strict_fields);
  EXPECT_FALSE(serve({"--no-strict-fields"}, {{"OMNIBUS_STRICT_FIELDS", "1"}}).strict_fields);
  EXPECT_FALSE(serve({"--no_strict_fields"}, {{"OMNIBUS_STRICT_FIELDS", "1"}}).strict_fields);
  EXPECT_FALSE(serve({"--strict-fields=false"}, {{"OMNIBUS_STRICT_FIELDS", "1"}}).strict_fields);
  for (const char* yes : {"true", "1", "yes", "on"}) {
    EXPECT_TRUE(serve({}, {{"OMNIBUS_STRICT_FIELDS", yes}}).strict_fields) << yes;
  }
  EXPECT_THAT(error({"serve"}, {{"OMNIBUS_STRICT_FIELDS", "si"}}), HasSubstr("OMNIBUS_STRICT_FIELDS: 'si'"));
}

TEST(Commands, ListsRepeatAsFlagsAndSplitInTheEnvironment) {
  // A flag takes one value, so that MODEL may follow it; a comma in a key stays a comma.
  const auto config = serve({"--api-key", "a,b", "--api-key", "c", "model.gguf"});
  EXPECT_EQ(config.api_keys, (Args{"a,b", "c"}));
  EXPECT_EQ(config.model, "model.gguf");
  EXPECT_EQ(serve({}, {{"OMNIBUS_API_KEY", "a,b"}}).api_keys, (Args{"a", "b"}));
  EXPECT_THAT(error({"serve"}, {{"OMNIBUS_API_KEY", "a,,b"}}),
              HasSubstr("OMNIBUS_API_KEY: an item is empty"));
}

TEST(Commands, LastOfARepeatedFlagCounts) { EXPECT_EQ(serve({"--port", "1", "--port", "2"}).http.port, 2); }

TEST(Commands, EveryEngineFlagReachesItsField) {
  const auto engine = serve({"--max-model-len",
                             "100",
                             "--max-num-seqs",
                             "7",
                             "--max-num-batched-tokens",
                             "64",
                             "--numerics",
                             "f32",
                             "--threads",
                             "3",
                             "--cpu-isa",
                             "avx2",
                             "--kv-cache-memory",
                             "128",
                             "--seed",
                             "18446744073709551615",
                             "--max-logprobs",
                             "5",
                             "--tensor-parallel-size",
                             "1"})
                          .engine;
  EXPECT_EQ(engine.max_model_len, 100);
  EXPECT_EQ(engine.max_num_seqs, 7);
  EXPECT_EQ(engine.max_num_batched_tokens, 64);
  EXPECT_EQ(engine.numerics, NumericsOption::kF32);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(engine.cpu_isa, CpuIsaOption::kAvx2);
  EXPECT_EQ(engine.kv_cache_memory_mib, 128);
  EXPECT_EQ(engine.seed, 18446744073709551615ULL);
  EXPECT_EQ(engine.max_logprobs, 5);
}

// A step holds at least one token of every running request.
TEST(Commands, TokenBudgetFollowsTheNumberOfRequests) {
  EXPECT_EQ(serve({}).engine.batched_tokens(), 512);
  EXPECT_EQ(serve({"--max-num-seqs", "600"}).engine.batched_tokens(), 600);
  EXPECT_EQ(serve({"--max-num-seqs", "64", "--max-num-batched-tokens", "64"}).engine.batched_tokens(), 64);
  const std::string refused = error({"serve", "--max-num-seqs", "600", "--max-num-batched-tokens", "512"});
  EXPECT_THAT(refused, HasSubstr("--max-num-batched-tokens: 512"));
  EXPECT_THAT(refused, HasSubstr("--max-num-seqs, 600"));
  EXPECT_THAT(error({"serve", "--max-num-batched-tokens", "16"}), HasSubstr("--max-num-batched-tokens: 16"));
  EXPECT_TRUE(parse({"run", "--max-num-batched-tokens", "16"}).ok()) << "one conversation needs little";
}

TEST(Commands, SharesAreReadAtOnce) {
  using Weights = std::map<std::string, double>;
  EXPECT_EQ(serve({"--fair-sharing", "off"}).tenant_weights, Weights());
  EXPECT_EQ(serve({"--fair-sharing", "equal"}).tenant_weights, Weights());
  EXPECT_EQ(serve({"--fair-sharing", "a=2,b=0.5,c=d=1e3"}).tenant_weights,
            (Weights{{"a", 2}, {"b", 0.5}, {"c=d", 1000}}));
  for (const char* bad :
       {"", "a", "a=", "=1", "a=0", "a=-1", "a=nan", "a=inf", "a=1e999", "a=1,", "a=1,a=2", "a=1x"})
    EXPECT_THAT(error({"serve", "--fair-sharing", bad}), HasSubstr("--fair-sharing")) << bad;
}

TEST(Commands, BadValuesNameTheFlag) {
  const struct {
    Args args;
    const char* says;
  } cases[] = {
      {{"serve", "--port", "x"}, "--port: 'x' is not a whole number"},
      {{"serve", "--port", "-1"}, "--port: -1 is not within 0 and 65535"},
      {{"serve", "--port", "99999999999999999999"}, "--port: 99999999999999999999 is not within"},
      {{"serve", "--port", "1e3"}, "--port: '1e3'"},
      {{"serve", "--port", " 1"}, "--port: ' 1'"},
      {{"serve", "--port", ""}, "--port: ''"},
      {{"serve", "--port"}, "--port"},
      {{"serve", "--numerics", "int4"}, "--numerics: 'int4' is not one of {fast,f32}"},
      {{"serve", "--header-timeout", "nan"}, "--header-timeout: 'nan' is not a number"},
      {{"serve", "--header-timeout", "0"}, "--header-timeout: 0 is not within"},
      {{"serve", "--seed", "-1"}, "--seed: '-1'"},
      {{"serve", "--no-such-flag"}, "--no-such-flag (omnibus serve --help lists"},
      {{"serve", "--api-key", ""}, "--api-key: an item is empty"},
      {{"serve", "model", "surplus"}, "surplus"},
      {{"serve", ""}, "MODEL: is empty"},
      {{"run", "--temperature", "2.5"}, "--temperature: 2.5 is not within 0 and 2"},
      {{"show"}, "MODEL"},
      {{"list", "--port", "1"}, "--port"},
      {{}, "no command given: the commands are serve, run, bench serve, pull, list, show, version"},
      {{"sevre"}, "unknown command 'sevre'"},
  };
  for (const auto& c : cases)
    EXPECT_THAT(error(c.args), HasSubstr(c.says)) << ::testing::PrintToString(c.args);
}

TEST(Commands, WorkersThatDoNotExistAreRefusedByName) {
  for (const char* command : {"serve", "run"}) {
    EXPECT_THAT(error({command, "--tensor-parallel-size", "2"}),
                HasSubstr("--tensor-parallel-size: 2 needs worker processes, which do not exist yet"));
    EXPECT_THAT(error({command, "--pipeline-parallel-size", "4"}), HasSubstr("--pipeline-parallel-size: 4"));
  }
}

TEST(Commands, BindBeyondLoopbackNeedsAKey) {
  for (const char* host : {"0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org"}) {
    EXPECT_THAT(error({"serve", "--host", host}), HasSubstr("--host: ")) << host;
    EXPECT_EQ(serve({"--host", host, "--api-key", "k"}).http.host, host);
    EXPECT_EQ(serve({"--host", host, "--allow-unauthenticated"}).http.host, host);
  }
  for (const char* host : {"127.0.0.1", "127.8.9.1", "::1", "localhost"}) serve({"--host", host});
}

std::vector<std::pair<std::string, std::string>> keys_of(const ServeConfig& config) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ApiKey& key : config.keys) out.emplace_back(key.name, key.key);
  return out;
}

TEST_F(ConfigFileTest, ApiKeyFile) {
  const std::string path = write("# keys\nfirst \nalice\t second\r\n\n  bob third\n");
  const auto config = serve({"--host", "0.0.0.0", "--api-key", "zero=", "--api-key-file", path});
  EXPECT_EQ(keys_of(config),
            (std::vector<std::pair<std::string, std::string>>{
                {"key1", "zero="}, {"key2", "first"}, {"alice", "second"}, {"bob", "third"}}));
  EXPECT_THAT(error({"serve", "--api-key-file", write("# nothing\n")}), HasSubstr("holds no key"));
  EXPECT_THAT(error({"serve", "--api-key-file", "/no/such"}), HasSubstr("--api-key-file: cannot read"));
}

TEST_F(ConfigFileTest, ApiKeysThatAreRefusedAndNotShown) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a SECRET\na other\n", "line 2 of"},        // the name twice
      {"a SECRET\nb SECRET\n", "is there twice"},  // the key twice
      {"SECRET\nSECRET\n", "is there twice"},
      {"key2 SECRET\nother\n", "the name 'key2' is taken"},
      {"a b SECRET\n", "a name and a key"},
      {"a/b SECRET\n", "bad name"},
      {std::string(65, 'n') + " SECRET\n", "bad name"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = error({"serve", "--api-key-file", write(text)});
    EXPECT_THAT(message, HasSubstr(expected)) << text;
    EXPECT_THAT(message, Not(HasSubstr("SECRET"))) << text;
  }
  const std::string twice = error({"serve", "--api-key", "SECRET", "--api-key", "SECRET"});
  EXPECT_EQ(twice, "--api-key: key 2 of 2 is there twice");
  EXPECT_THAT(error({"serve", "--api-key", "SECRET", "--api-key-file", write("SECRET\n")}),
              HasSubstr("line 1 of"));
}

TEST_F(ConfigFileTest, AKeyFileThatEverybodyReadsIsWarnedOf) {
  const std::string path = write("a k\n");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const auto open = serve({"--api-key-file", path});
  ASSERT_EQ(open.warnings.size(), 1U);
  EXPECT_THAT(open.warnings[0], HasSubstr(path));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(serve({"--api-key-file", path}).warnings.empty());
}

TEST(Commands, HostsAndOrigins) {
  for (const char* host : {"h", "a.b-c", "h:80", "*.example.org", "*", "[::1]", "[::1]:80", "10.0.0.1"}) {
    EXPECT_EQ(serve({"--allowed-hosts", host}).http.allowed_hosts, Args{host});
  }
  for (const char* host :
       {"http://h", "h/", "h:", "h:x", "h:123456", "*h", "a.*", "::1", "[::1", "[x]", "a b", "*."}) {
    EXPECT_THAT(error({"serve", "--allowed-hosts", host}), HasSubstr("--allowed-hosts: '")) << host;
  }
  for (const char* origin : {"*", "http://h", "https://h:8443", "http://[::1]:80", "tauri://localhost"}) {
    EXPECT_EQ(serve({"--allowed-origins", origin}).http.allowed_origins, Args{origin});
  }
  for (const char* origin :
       {"h", "null", "http://h/", "http://", "://h", "http://h/x", "[\"*\"]", "http://*"}) {
    EXPECT_THAT(error({"serve", "--allowed-origins", origin}), HasSubstr("--allowed-origins: '")) << origin;
  }
}

TEST(Commands, CertificateFlagsBelongTogether) {
  EXPECT_EQ(serve({"--ssl-certfile", "c", "--ssl-keyfile", "k"}).http.ssl_keyfile, "k");
  EXPECT_THAT(error({"serve", "--ssl-keyfile", "k"}), HasSubstr("--ssl-keyfile: needs --ssl-certfile"));
  EXPECT_THAT(error({"serve", "--ssl-ca-certs", "c"}), HasSubstr("--ssl-ca-certs: needs --ssl-certfile"));
}

TEST(Commands, RunTakesModelAndPromptWords) {
  const auto command = parse({"run", "m", "--temperature", "0", "why", "is", "it?", "--max-tokens", "9"});
  ASSERT_TRUE(command.ok()) << command.status();
  const auto& run = std::get<RunConfig>(*command);
  EXPECT_EQ(run.model, "m");
  EXPECT_EQ(run.prompt_words, (Args{"why", "is", "it?"}));
  EXPECT_EQ(run.temperature, 0.0);
  EXPECT_EQ(run.max_tokens, 9);
}

TEST(Commands, RunHasOnlyTheOptionsItUses) {
  for (const char* flag : {"--max-num-seqs", "--max-logprobs", "--port"}) {
    EXPECT_THAT(error({"run", "m", flag, "1"}), HasSubstr(flag));
    EXPECT_TRUE(parse({"serve", "m", flag, "1"}).ok()) << flag;
  }
}

TEST(Commands, WhoseSamplingParametersHold) {
  EXPECT_EQ(serve({}).generation_config, GenerationConfigOption::kAuto);
  EXPECT_EQ(serve({"--generation-config", "auto"}).generation_config, GenerationConfigOption::kAuto);
  for (const char* name : {"none", "vllm"})
    EXPECT_EQ(serve({"--generation-config", name}).generation_config, GenerationConfigOption::kNone);
  EXPECT_THAT(error({"serve", "--generation-config", "folder"}), HasSubstr("--generation-config"));
  EXPECT_FALSE(serve({}).prefill_assistant);
  EXPECT_TRUE(serve({"--prefill-assistant"}).prefill_assistant);
  EXPECT_EQ(serve({"--reasoning-parser", "qwen3"}).reasoning_parser, "qwen3");
  EXPECT_EQ(serve({"--reasoning-field", "reasoning"}).reasoning_field, ReasoningFieldOption::kReasoning);
}

TEST(Commands, MaxLogprobsMayBeAll) {
  EXPECT_EQ(serve({"--max-logprobs", "-1"}).engine.max_logprobs, -1);
  EXPECT_THAT(error({"serve", "--max-logprobs", "-2"}), HasSubstr("--max-logprobs"));
}

TEST(Commands, RunIsQuietUnlessAskedToSpeak) {
  const auto level = [](const Args& args) { return std::get<RunConfig>(parse(args).value()).log.level; };
  EXPECT_EQ(level({"run", "m"}), LogLevel::kWarning);
  EXPECT_EQ(level({"run", "m", "--log-level", "debug"}), LogLevel::kDebug);
  EXPECT_EQ(level({"run", "m", "--log-level", "error"}), LogLevel::kError);
}

// A limit above what any route takes would be a promise that is not kept.
TEST(Commands, MaxBodyBytesIsBoundedByTheRoutes) {
  EXPECT_EQ(serve({"--max-body-bytes", "33554432"}).http.max_body_bytes, 32 << 20);
  EXPECT_THAT(error({"serve", "--max-body-bytes", "33554433"}), HasSubstr("--max-body-bytes"));
}

TEST(Commands, WordsAfterTwoDashesAreNotFlags) {
  const auto command = parse({"run", "m", "--", "--port", "--max_tokens"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(std::get<RunConfig>(*command).prompt_words, (Args{"--port", "--max_tokens"}));
}

TEST(Commands, HelpForEveryCommandListsEveryOption) {
  for (const char* command : {"serve", "run", "pull", "list", "show", "version"}) {
    for (const char* flag : {"--help", "-h"}) {
      const auto parsed = parse({command, flag});
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_THAT(std::get<HelpConfig>(*parsed).text, HasSubstr("--config")) << command;
    }
  }
  ServeConfig config;
  OptionSet options("serve", "");
  declare_options(options, config);
  const std::string text = std::get<HelpConfig>(*parse({"serve", "--help"})).text;
  for (const auto& option : options.options()) EXPECT_THAT(text, HasSubstr(option.name));
  EXPECT_THAT(text, HasSubstr("--port N (8000)"));
  EXPECT_THAT(std::get<HelpConfig>(*parse({"--help"})).text, HasSubstr("serve"));
  EXPECT_TRUE(std::holds_alternative<VersionConfig>(*parse({"--version"})));
  EXPECT_TRUE(std::holds_alternative<VersionConfig>(*parse({"version"})));
}

// What the replay server does: serve's options and one more, without subcommands.
TEST(Commands, ServeOptionsInAProgramOfItsOwn) {
  ServeConfig config;
  std::string script;
  OptionSet options("omnibus-replay", "");
  declare_options(options, config);
  options.add("script", script, "FILE", "What to answer");
  const std::array<OptionSet*, 1> sets = {&options};
  const Args args = {"--script", "s.jsonl", "--port", "0"};
  const auto result = parse_options({"omnibus-replay", "", false}, sets, args,
                                    [](const std::string&) -> std::optional<std::string> { return {}; });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->chosen, &options);
  EXPECT_EQ(script, "s.jsonl");
  EXPECT_EQ(config.http.port, 0);
  EXPECT_TRUE(finish_serve_config(config).ok());
}

TEST_F(ConfigFileTest, KeysThatNoClientCanSendAreRefused) {
  for (const char* key : {" k", "k ", "\tk", " "}) {
    const std::string message = error({"serve", "--api-key", "good", "--api-key", key});
    EXPECT_THAT(message, HasSubstr("--api-key: key 2 of 2 begins or ends with a blank"));
  }
  EXPECT_THAT(error({"serve"}, {{"OMNIBUS_API_KEY", "a, b"}}), HasSubstr("blank"));
  serve({"--api-key", "a b"});
}

TEST_F(ConfigFileTest, UnknownTablesAreNamedWithTheirLine) {
  const auto says = [&](const std::string& text) { return error({"serve", "--config", write(text)}); };
  EXPECT_THAT(says("port = 1\n[serv]\nport = 2\n"), HasSubstr("line 2: unknown table [serv]"));
  EXPECT_THAT(says("[nothing]\n"), HasSubstr("line 1: unknown table [nothing]"));
  EXPECT_THAT(says("[serve.nothing]\n"), HasSubstr("line 1: unknown table [serve.nothing]"));
  EXPECT_EQ(serve({"--config", write("[serve.max]\nbody-bytes = 2048\n")}).http.max_body_bytes, 2048);
}

TEST(Commands, VariablesThatNoCommandKnows) {
  const Args names = {"OMNIBUS_PROT", "OMNIBUS_PORT",   "OMNIBUS_TEMPERATURE", "OMNIBUS_HOME",
                      "PATH",         "OMNIBUS_CONFIG", "OMNIBUS_TEST_MODEL",  "OMNIBUS_"};
  EXPECT_EQ(unknown_variables(names), (Args{"OMNIBUS_PROT", "OMNIBUS_"}));
}

TEST(Commands, HelpIsAWordToo) {
  const auto text = [](const Args& args) { return std::get<HelpConfig>(parse(args).value()).text; };
  EXPECT_EQ(text({"help"}), text({"--help"}));
  EXPECT_EQ(text({"help", "run"}), text({"run", "--help"}));
}

TEST(Commands, AnEmptyPromptIsNoPrompt) {
  EXPECT_THAT(error({"run", "m", ""}), HasSubstr("PROMPT: is empty"));
  EXPECT_THAT(error({"run", "m", " ", "\t"}), HasSubstr("PROMPT: is empty"));
}

TEST(Commands, AHostThatIsNoAddress) {
  EXPECT_THAT(error({"serve", "--host", "127.0.0.300"}), HasSubstr("'127.0.0.300' is not an address"));
  EXPECT_THAT(error({"serve", "--host", "0.0.0.0"}), HasSubstr("can be reached from other machines"));
}

// Each flag's own text, then another one: exactly that flag has changed.
TEST(Commands, ChangedOptionsAreNamed) {
  const ServeConfig plain = serve({});
  EXPECT_THAT(changed_options(plain, plain), ::testing::IsEmpty());
  const std::vector<Args> one_each = {
      {"--port", "1"},       {"--ollama-port", "0"},   {"--api-key", "k"},      {"--header-timeout", "10.5"},
      {"--any-model"},       {"--async-scheduling"},   {"--seed", "0"},         {"--default-max-tokens", "1"},
      {"--numerics", "f32"}, {"--log-level", "debug"}, {"--chat-template", "x"}};
  for (const Args& args : one_each) {
    EXPECT_THAT(changed_options(plain, serve(args)), ::testing::ElementsAre(args[0]));
    EXPECT_THAT(changed_options(serve(args), serve(args)), ::testing::IsEmpty());
  }
  EXPECT_THAT(changed_options(plain, serve({"other.gguf"})), ::testing::ElementsAre("MODEL"));
  EXPECT_THAT(changed_options(serve({"--api-key", "a", "--api-key", "b"}), serve({"--api-key", "a"})),
              ::testing::ElementsAre("--api-key"));
}

TEST(Commands, PlacesOfTheAdminRoutes) {
  const auto place = [](Args args) { return parse_admin_place(serve(std::move(args)).http).value(); };
  EXPECT_EQ(place({}).kind, AdminPlace::Kind::kAuto);
  EXPECT_EQ(place({"--admin-listen", "off"}).kind, AdminPlace::Kind::kOff);
  const AdminPlace socket = place({"--admin-listen", "unix:/run/x:1.sock"});
  EXPECT_EQ(socket.kind, AdminPlace::Kind::kUnix);
  EXPECT_EQ(socket.path, "/run/x:1.sock");
  for (const auto& [text, host] : std::map<std::string, std::string>{
           {"127.0.0.1:9", "127.0.0.1"}, {"[::1]:9", "::1"}, {"localhost:9", "localhost"}}) {
    const AdminPlace tcp = place({"--admin-listen", text, "--admin-api-key", "k"});
    EXPECT_EQ(tcp.kind, AdminPlace::Kind::kTcp);
    EXPECT_EQ(tcp.host, host);
    EXPECT_EQ(tcp.port, 9);
    EXPECT_THAT(error({"serve", "--admin-listen", text}), HasSubstr("--admin-api-key"));
  }
  EXPECT_THAT(error({"serve", "--admin-listen", "0.0.0.0:9", "--admin-api-key", "k"}), HasSubstr("loopback"));
  EXPECT_THAT(error({"serve", "--admin-api-key", "k "}), HasSubstr("--admin-api-key: key 1 of 1"));
  EXPECT_THAT(error({"serve", "--admin-api-key", "k", "--api-key", "k"}), HasSubstr("is there twice"));
}

}  // namespace
}  // namespace omnibus
