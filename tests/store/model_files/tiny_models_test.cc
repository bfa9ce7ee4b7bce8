// The tiny models (tests/data) read completely, and each has a golden of logits.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"
#include "omnibus/store/model_files/tokenizer_spec.h"

namespace omnibus {
namespace {

std::vector<std::filesystem::path> tiny_models() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(OMNIBUS_BINARY_DIR "/tiny_models")) {
    if (entry.path().extension() == ".gguf") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(TinyModels, EveryOneIsReadAndHasAGolden) {
  std::set<std::string> architectures;
  std::set<std::string> types;
  std::set<std::string> tokenizers;
  int untied = 0, biased = 0, normed = 0, factors = 0, linear = 0, wide_heads = 0;
  for (const std::filesystem::path& path : tiny_models()) {
    SCOPED_TRACE(path);
    auto file = GgufFile::open(path.string());
    ASSERT_TRUE(file.ok()) << file.status();
    auto config = read_model_config(**file);
    ASSERT_TRUE(config.ok()) << config.status();
    auto spec = read_tokenizer_spec(**file);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(config->name, path.stem().string());
    EXPECT_LE(config->file_bytes, 2'000'000);
    EXPECT_EQ(spec->tokens.size(), static_cast<size_t>(config->vocab_size));
    EXPECT_FALSE(spec->end_of_generation.empty());
    architectures.insert(config->architecture);
    types.insert(config->quantization);
    tokenizers.insert(spec->model);
    untied += config->tied_head ? 0 : 1;
    biased += config->attention_bias;
    normed += config->qk_norm;
    factors += config->rope.has_freq_factors;
    linear += config->rope.scaling == RopeScaling::kLinear;
    wide_heads += config->head_dim * config->num_heads != config->hidden_size;

    std::ifstream in(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/goldens/tiny/" + path.stem().string() +
                     ".json");
    ASSERT_TRUE(in.good()) << "no golden";
    const auto golden = nlohmann::json::parse(in);
    EXPECT_EQ(golden["architecture"], config->architecture);
    EXPECT_EQ(golden["vocabulary"], config->vocab_size);
    EXPECT_EQ(golden["positions"].size(), golden["ids"].size());
  }
  EXPECT_EQ(architectures, (std::set<std::string>{"llama", "qwen2", "qwen3"}));
  EXPECT_EQ(types, (std::set<std::string>{"BF16", "F16", "F32", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K",
                                          "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"}));
  EXPECT_EQ(tokenizers, (std::set<std::string>{"gpt2", "llama"}));
  for (const int count : {untied, biased, normed, factors, linear, wide_heads}) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace omnibus
