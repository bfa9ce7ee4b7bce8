#include "src/cli/sampling_defaults.h"

#include <gtest/gtest.h>

#include "fakes/gguf_writer.h"

namespace omnibus {
namespace {

SamplingDefaults defaults_of(const fakes::GgufWriter& writer) {
  const auto file = GgufFile::parse(writer.bytes(), "a file");
  EXPECT_TRUE(file.ok()) << file.status();
  return read_sampling_defaults(**file);
}

TEST(SamplingDefaults, AreThoseOfTheFile) {
  fakes::GgufWriter writer;
  writer.set_f32("general.sampling.temp", 0.6F);
  writer.set_i32("general.sampling.top_k", 20);
  writer.set_f32("general.sampling.top_p", 0.95F);
  writer.set_f32("general.sampling.min_p", 0);
  writer.set_f32("general.sampling.penalty_repeat", 1.05F);
  const SamplingDefaults defaults = defaults_of(writer);
  EXPECT_EQ(defaults.temperature, 0.6F);
  EXPECT_EQ(defaults.top_k, 20);
  EXPECT_EQ(defaults.top_p, 0.95F);
  EXPECT_EQ(defaults.min_p, 0.0F);
  EXPECT_EQ(defaults.repetition_penalty, 1.05F);
  SamplingParams params;
  params.presence_penalty = 0.5F;
  defaults.apply_to(params);
  EXPECT_EQ(params.temperature, 0.6F);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.presence_penalty, 0.5F);
}

TEST(SamplingDefaults, AFileThatSaysNothingChangesNothing) {
  fakes::GgufWriter writer;
  writer.set_string("general.name", "x");
  SamplingParams params;
  defaults_of(writer).apply_to(params);
  EXPECT_EQ(params.temperature, SamplingParams().temperature);
  EXPECT_EQ(params.top_k, SamplingParams().top_k);
  EXPECT_EQ(params.top_p, SamplingParams().top_p);
}

TEST(SamplingDefaults, WhatNoRequestCouldBringIsLeftOut) {
  fakes::GgufWriter writer;
  writer.set_f32("general.sampling.temp", 7);
  writer.set_string("general.sampling.top_k", "many");
  writer.set_f32("general.sampling.top_p", -0.5F);
  writer.set_f32("general.sampling.penalty_repeat", 0);
  writer.set_f32("general.sampling.min_p", 0.1F);
  const SamplingDefaults defaults = defaults_of(writer);
  EXPECT_FALSE(defaults.temperature || defaults.top_k || defaults.top_p || defaults.repetition_penalty);
  EXPECT_EQ(defaults.min_p, 0.1F);
}

}  // namespace
}  // namespace omnibus
