// Sizes and switches of the dense architectures; each refusal names its key or tensor.
#include "omnibus/store/model_files/model_config.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/store/model_files/gguf.h"

#include "dense_file.h"

namespace omnibus {
namespace {

using fakes::GgufWriter;
using ::testing::HasSubstr;

StatusOr<ModelConfig> read(const GgufWriter& file) {
  auto parsed = GgufFile::parse(file.bytes(), "folder/some.gguf");
  if (!parsed.ok()) return parsed.status();
  return read_model_config(**parsed);
}

void expect_refused(const GgufWriter& file, const std::string& name, StatusCode code) {
  const Status status = read(file).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(status_message(status), HasSubstr("folder/some.gguf: "));
  EXPECT_THAT(status_message(status), HasSubstr("'" + name + "'"));
}

TEST(ModelConfig, LlamaWithDefaults) {
  auto config = read(dense_file());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->name, "Small one");
  EXPECT_EQ(config->vocab_size, 263);
  EXPECT_EQ(config->context_length, 128);
  EXPECT_EQ(config->hidden_size, 96);
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->intermediate_size, 64);
  EXPECT_EQ(config->num_heads, 6);
  EXPECT_EQ(config->num_kv_heads, 3);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FLOAT_EQ(config->rms_norm_eps, 1e-5);
  EXPECT_EQ(config->rope.style, RopeStyle::kNorm);
  EXPECT_EQ(config->rope.dims, 16);
  EXPECT_EQ(config->rope.freq_base, 100000.0);
  EXPECT_EQ(config->rope.scaling, RopeScaling::kNone);
  EXPECT_FALSE(config->rope.has_freq_factors);
  EXPECT_TRUE(config->tied_head);
  EXPECT_FALSE(config->attention_bias);
  EXPECT_FALSE(config->qk_norm);
  EXPECT_EQ(config->quantization, "Q4_1");
  // By hand: embedding, two layers of four attention and three feed-forward matrices and two norms, last
  // norm.
  EXPECT_EQ(config->parameters, 96 * 263 + 2 * (96 * (96 + 48 + 48 + 96) + 3 * 96 * 64 + 2 * 96) + 96);
}

TEST(ModelConfig, VariantsAreReadFromTensors) {
  DenseFile sizes;
  sizes.tied = false;
  sizes.freqs = true;
  auto llama = read(dense_file(sizes));
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_FALSE(llama->tied_head);
  EXPECT_TRUE(llama->rope.has_freq_factors);

  sizes = {};
  sizes.architecture = "qwen2";
  sizes.bias = true;
  auto qwen2 = read(dense_file(sizes));
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_TRUE(qwen2->attention_bias);
  EXPECT_EQ(qwen2->rope.style, RopeStyle::kNeox);

  sizes = {};
  sizes.architecture = "qwen3";
  sizes.qk_norm = true;
  sizes.head_dim = 32;
  auto qwen3 = read(dense_file(sizes));
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_TRUE(qwen3->qk_norm);
  EXPECT_EQ(qwen3->head_dim, 32);
  EXPECT_EQ(qwen3->hidden_size, 96);
  EXPECT_EQ(qwen3->rope.style, RopeStyle::kNeox);
}

TEST(ModelConfig, RopeScaling) {
  GgufWriter file = dense_file();
  file.set_string("llama.rope.scaling.type", "linear");
  file.set_f32("llama.rope.scaling.factor", 4.0f);
  auto config = read(file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4.0);
  file.set_string("llama.rope.scaling.type", "none");
  EXPECT_EQ(read(file)->rope.scaling, RopeScaling::kNone);
  GgufWriter old = dense_file();
  old.set_f32("llama.rope.scale_linear", 2.0f);
  EXPECT_EQ(read(old)->rope.factor, 2.0);
  for (const char* type : {"yarn", "longrope"}) {
    file.set_string("llama.rope.scaling.type", type);
    expect_refused(file, "llama.rope.scaling.type", StatusCode::kUnimplemented);
  }
  file.set_string("llama.rope.scaling.type", "other");
  expect_refused(file, "llama.rope.scaling.type", StatusCode::kInvalidArgument);
}

TEST(ModelConfig, NameFallsBackToTheStem) {
  GgufWriter file = dense_file();
  file.erase("general.name");
  EXPECT_EQ(read(file)->name, "some");
}

TEST(ModelConfig, PerLayerSizesMustBeEqual) {
  GgufWriter file = dense_file();
  file.set_i32s("llama.attention.head_count_kv", {3, 3});
  file.set_i32s("llama.feed_forward_length", {64, 64});
  EXPECT_EQ(read(file)->num_kv_heads, 3);
  file.set_i32s("llama.feed_forward_length", {64, 32});
  expect_refused(file, "llama.feed_forward_length", StatusCode::kUnimplemented);
}

TEST(ModelConfig, MissingKeysAreNamed) {
  for (const char* key : {"general.architecture", "llama.block_count", "llama.context_length",
                          "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.attention.layer_norm_rms_epsilon"}) {
    GgufWriter file = dense_file();
    file.erase(key);
    expect_refused(file, key, StatusCode::kInvalidArgument);
  }
  GgufWriter file = dense_file();
  file.erase("tokenizer.ggml.tokens");
  expect_refused(file, "llama.vocab_size", StatusCode::kInvalidArgument);
  file.set_u32("llama.vocab_size", 263);
  EXPECT_TRUE(read(file).ok());
}

TEST(ModelConfig, SizesOutOfRangeAreNamed) {
  struct Case {
    const char* key;
    uint64_t value;
  };
  const Case cases[] = {{"llama.block_count", 0},
                        {"llama.block_count", 513},
                        {"llama.block_count", ~uint64_t{0}},
                        {"llama.context_length", 0},
                        {"llama.context_length", uint64_t{1} << 31},
                        {"llama.embedding_length", (1 << 24) + 1},
                        {"llama.feed_forward_length", uint64_t{1} << 40},
                        {"llama.attention.head_count", 0},
                        {"llama.attention.head_count", 9},
                        {"llama.attention.head_count_kv", 4},
                        {"llama.attention.head_count_kv", 0},
                        {"llama.attention.key_length", 15},
                        {"llama.attention.key_length", 1 << 15},
                        {"llama.rope.dimension_count", 18},
                        {"llama.rope.dimension_count", 7},
                        {"llama.vocab_size", 262}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.key) + " = " + std::to_string(c.value));
    GgufWriter file = dense_file();
    file.set_u64(c.key, c.value);
    if (std::string(c.key).ends_with("key_length")) file.set_u64("llama.attention.value_length", c.value);
    expect_refused(file, c.key, StatusCode::kInvalidArgument);
  }
}

// The kernels' limit: a wider head must be refused here, by its key, and not stop the process later.
TEST(ModelConfig, HeadsWiderThanTheKernelsAreRefusedByKey) {
  for (const uint64_t wide : {258, 512, 16384}) {
    DenseFile sizes;
    sizes.layers = sizes.heads = sizes.kv_heads = 1;
    sizes.head_dim = wide;
    sizes.matrix_type = GgmlType::kF32;  // any width is whole blocks
    SCOPED_TRACE(wide);
    expect_refused(dense_file(sizes), "llama.attention.key_length", StatusCode::kUnimplemented);
  }
  DenseFile derived;  // without the key the width of a head follows from the count
  derived.matrix_type = GgmlType::kF32;
  derived.hidden = 1032;
  derived.heads = 2;
  derived.kv_heads = 1;
  derived.head_dim = 516;
  GgufWriter file = dense_file(derived);
  file.erase("llama.attention.key_length");
  file.erase("llama.attention.value_length");
  expect_refused(file, "llama.attention.head_count", StatusCode::kUnimplemented);
  DenseFile widest;
  widest.head_dim = 256;
  const auto config = read(dense_file(widest));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_dim, 256);
}

TEST(ModelConfig, WrongKindsAreNamed) {
  for (const char* key : {"general.architecture", "llama.rope.freq_base", "llama.block_count"}) {
    GgufWriter file = dense_file();
    file.set_bool(key, true);
    expect_refused(file, key, StatusCode::kInvalidArgument);
  }
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    GgufWriter file = dense_file();
    file.set_f32("llama.rope.freq_base", value);
    expect_refused(file, "llama.rope.freq_base", StatusCode::kInvalidArgument);
  }
}

TEST(ModelConfig, FeaturesThatAreNotBuiltAreRefusedByKey) {
  struct Case {
    const char* key;
    double value;
  };
  const Case cases[] = {{"llama.expert_count", 8},          {"llama.attention.sliding_window", 64},
                        {"llama.logit_scale", 0.5},         {"llama.attn_logit_softcapping", 50},
                        {"llama.attention.scale", 0.5},     {"llama.attention.max_alibi_bias", 8},
                        {"llama.nextn_predict_layers", 1},  {"llama.pooling_type", 3},
                        {"llama.attention.value_length", 8}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.key);
    GgufWriter file = dense_file();
    if (c.value == static_cast<int>(c.value)) {
      file.set_u32(c.key, static_cast<uint32_t>(c.value));
    } else {
      file.set_f32(c.key, static_cast<float>(c.value));
    }
    expect_refused(file, c.key, StatusCode::kUnimplemented);
  }
  GgufWriter file = dense_file();
  file.set_bool("llama.attention.causal", false);
  expect_refused(file, "llama.attention.causal", StatusCode::kUnimplemented);
  // The same keys at the values that change nothing.
  file = dense_file();
  file.set_u32("llama.expert_count", 0);
  file.set_u32("llama.attention.sliding_window", 128);
  file.set_f32("llama.logit_scale", 1.0f);
  file.set_f32("llama.attention.scale", 0.25f);
  file.set_bool("llama.attention.causal", true);
  EXPECT_TRUE(read(file).ok()) << read(file).status();
}

TEST(ModelConfig, ArchitecturesAndFileTypesAreNamed) {
  DenseFile sizes;
  sizes.architecture = "mamba";
  expect_refused(dense_file(sizes), "mamba", StatusCode::kUnimplemented);
  GgufWriter file = dense_file();
  file.set_string("general.type", "adapter");
  expect_refused(file, "adapter", StatusCode::kUnimplemented);
}

TEST(ModelConfig, EveryTensorIsRequired) {
  DenseFile sizes;
  sizes.architecture = "qwen3";
  sizes.qk_norm = true;
  sizes.bias = true;
  const GgufWriter good = dense_file(sizes);
  ASSERT_TRUE(read(good).ok()) << read(good).status();
  GgufWriter copy = good;
  for (const GgufWriter::Tensor& tensor : copy.tensors()) {
    GgufWriter file = good;
    file.erase_tensor(tensor.name);
    expect_refused(file, tensor.name, StatusCode::kInvalidArgument);
  }
}

TEST(ModelConfig, EveryShapeIsChecked) {
  DenseFile sizes;
  sizes.tied = false;
  sizes.freqs = true;
  sizes.bias = true;
  GgufWriter good = dense_file(sizes);
  ASSERT_TRUE(read(good).ok()) << read(good).status();
  for (size_t i = 0; i < good.tensors().size(); ++i) {
    const std::string name = good.tensors()[i].name;
    GgufWriter file = good;
    file.erase_tensor(name);
    auto dims = good.tensors()[i].dims;
    dims.back() *= 2;
    file.add_tensor(name, dims, static_cast<GgmlType>(good.tensors()[i].type));
    expect_refused(file, name, StatusCode::kInvalidArgument);
    dims = good.tensors()[i].dims;
    dims.push_back(1);  // a trailing 1 says nothing
    file.erase_tensor(name);
    file.add_tensor(name, dims, static_cast<GgmlType>(good.tensors()[i].type));
    EXPECT_TRUE(read(file).ok()) << read(file).status();
  }
}

TEST(ModelConfig, TensorTypesMustFitTheirUse) {
  GgufWriter file = dense_file();
  file.erase_tensor("output_norm.weight");
  file.add_tensor("output_norm.weight", {96}, GgmlType::kQ8_0);
  expect_refused(file, "output_norm.weight", StatusCode::kInvalidArgument);
  file = dense_file();
  file.erase_tensor("blk.1.ffn_up.weight");
  file.add_tensor("blk.1.ffn_up.weight", {96, 64}, GgmlType::kI8);
  expect_refused(file, "blk.1.ffn_up.weight", StatusCode::kInvalidArgument);
}

TEST(ModelConfig, UnexpectedTensorsAreNamed) {
  for (const char* name : {"blk.0.attn_output.bias", "blk.2.attn_q.weight", "blk.0.attn_q_norm.weight",
                           "extra", "blk.0.ffn_gate_inp.weight", "blk.00.attn_q.weight"}) {
    GgufWriter file = dense_file();
    file.add_tensor(name, {96}, GgmlType::kF32);
    expect_refused(file, name, StatusCode::kUnimplemented);
  }
  DenseFile sizes;
  sizes.architecture = "qwen2";
  GgufWriter file = dense_file(sizes);
  file.add_tensor("rope_freqs.weight", {8}, GgmlType::kF32);
  expect_refused(file, "rope_freqs.weight", StatusCode::kUnimplemented);
  // Biases in one layer only: the gap is what is wrong.
  file = dense_file();
  file.add_tensor("blk.1.attn_q.bias", {96}, GgmlType::kF32);
  expect_refused(file, "blk.0.attn_k.bias", StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace omnibus
