// Other people's templates, byte for byte as Jinja2 renders them. They are not ours to commit: the goldens
// hold digests, OMNIBUS_TEMPLATES_DIR names the folder (llama.cpp's models/templates).
#include <filesystem>

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "omnibus/store/model_files/gguf.h"

#include "text/template/golden.h"

namespace omnibus::jinja {
namespace {

using testing::Json;

std::string sha256(const std::string& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    hex += two;
  }
  return hex;
}

TEST(CorpusGolden, EveryRenderEqualsJinja2) {
  const char* folder = std::getenv("OMNIBUS_TEMPLATES_DIR");
  if (folder == nullptr) GTEST_SKIP() << "OMNIBUS_TEMPLATES_DIR is not set";
  const Json golden = testing::read_golden("corpus.json");
  int equal = 0, raised = 0, files = 0;
  for (const auto& [name, expected] : golden["templates"].items()) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path)) continue;
    const std::string source = testing::read_file(path);
    ASSERT_EQ(sha256(source), expected["sha256"]) << name << ": not the file that the goldens were made from";
    ++files;
    for (const auto& [label, render] : expected["renders"].items()) {
      const testing::Outcome got = testing::render_raw(source, golden["conversations"][label]);
      ASSERT_EQ(got.prompt.has_value(), !render.is_null()) << name << " / " << label << ": " << got.error;
      if (!got.prompt) {
        ++raised;
        continue;
      }
      EXPECT_EQ(sha256(got.prompt->text), render[1]) << name << " / " << label << ", expected " << render[0]
                                                     << " bytes, got " << got.prompt->text.size() << ":\n"
                                                     << got.prompt->text;
      ++equal;
    }
  }
  EXPECT_GT(files, 0);
  std::printf("%d templates: %d renders equal, %d raised as Jinja2 does\n", files, equal, raised);
}

// The default model's own template, as its file carries it.
TEST(CorpusGolden, TheDefaultModelsTemplateEqualsJinja2) {
  const char* path = std::getenv("OMNIBUS_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "OMNIBUS_TEST_MODEL does not name the default model's file";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto source = (*file)->get_string("tokenizer.chat_template");
  ASSERT_TRUE(source.ok()) << source.status();
  const Json golden = testing::read_golden("corpus.json");
  const Json& expected = golden["templates"]["default-model"];
  ASSERT_EQ(sha256(*source), expected["sha256"]);
  ASSERT_GE(expected["renders"].size(), 4U);
  for (const auto& [label, render] : expected["renders"].items()) {
    const testing::Outcome got = testing::render_raw(*source, golden["conversations"][label]);
    ASSERT_EQ(got.prompt.has_value(), !render.is_null()) << label << ": " << got.error;
    if (got.prompt) EXPECT_EQ(sha256(got.prompt->text), render[1]) << label << ":\n" << got.prompt->text;
  }
}

}  // namespace
}  // namespace omnibus::jinja
