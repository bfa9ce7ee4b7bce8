// Whatever a writer puts in, the reader gives back: random files, seeds printed.
#include <algorithm>
#include <bit>
#include <random>

#include <gtest/gtest.h>

#include "omnibus/store/model_files/gguf.h"

#include "fakes/gguf_writer.h"

namespace omnibus {
namespace {

using fakes::GgufWriter;

constexpr GgmlType kTypes[] = {
    GgmlType::kF32,  GgmlType::kF16,  GgmlType::kQ4_0, GgmlType::kQ4_1, GgmlType::kQ5_0, GgmlType::kQ5_1,
    GgmlType::kQ8_0, GgmlType::kQ2_K, GgmlType::kQ3_K, GgmlType::kQ4_K, GgmlType::kQ5_K, GgmlType::kQ6_K,
    GgmlType::kI8,   GgmlType::kI16,  GgmlType::kI32,  GgmlType::kI64,  GgmlType::kF64,  GgmlType::kBF16};

// Writes one random pair and returns the value that must come back.
GgufValue random_pair(std::mt19937_64& random, const std::string& key, GgufWriter* file, std::string* text) {
  const auto u = [&] { return random(); };
  switch (random() % 12) {
    case 0: {
      const auto v = static_cast<uint8_t>(u());
      file->set_u8(key, v);
      return uint64_t{v};
    }
    case 1: {
      const auto v = static_cast<int8_t>(u());
      file->set_i8(key, v);
      return int64_t{v};
    }
    case 2: {
      const auto v = static_cast<uint16_t>(u());
      file->set_u16(key, v);
      return uint64_t{v};
    }
    case 3: {
      const auto v = static_cast<int16_t>(u());
      file->set_i16(key, v);
      return int64_t{v};
    }
    case 4: {
      const auto v = static_cast<uint32_t>(u());
      file->set_u32(key, v);
      return uint64_t{v};
    }
    case 5: {
      const auto v = static_cast<int32_t>(u());
      file->set_i32(key, v);
      return int64_t{v};
    }
    case 6: {
      const uint64_t v = u();
      file->set_u64(key, v);
      return v;
    }
    case 7: {
      const auto v = static_cast<int64_t>(u());
      file->set_i64(key, v);
      return v;
    }
    case 8: {
      const float v = static_cast<float>(u() % 1000) / 7;
      file->set_f32(key, v);
      return double{v};
    }
    case 9: {
      const double v = static_cast<double>(u()) / 3;
      file->set_f64(key, v);
      return v;
    }
    case 10: {
      const bool v = u() % 2 == 1;
      file->set_bool(key, v);
      return v;
    }
    default: {
      for (uint64_t i = u() % 200; i > 0; --i) *text += static_cast<char>(u());
      file->set_string(key, *text);
      return std::string_view(*text);
    }
  }
}

std::vector<uint64_t> random_shape(std::mt19937_64& random, GgmlType type) {
  std::vector<uint64_t> dims = {random() % 3 * ggml_type_traits(static_cast<uint32_t>(type))->block_elements};
  while (dims.size() < 4 && random() % 2 == 0) dims.push_back(random() % 3 + 1);
  return dims;
}

TEST(GgufRoundTrip, ScalarsAndTensorsComeBack) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    GgufWriter file;
    file.set_version(2 + random() % 2);
    if (random() % 2 == 0) file.set_alignment(8u << random() % 8);
    std::vector<std::string> texts(random() % 20);
    std::vector<GgufValue> values;
    for (size_t i = 0; i < texts.size(); ++i) {
      values.push_back(random_pair(random, "k" + std::to_string(i), &file, &texts[i]));
    }
    const size_t tensors = random() % 8;
    for (size_t i = 0; i < tensors; ++i) {
      const GgmlType type = kTypes[random() % std::size(kTypes)];
      file.add_tensor("t" + std::to_string(i), random_shape(random, type), type, static_cast<uint8_t>(i + 1));
    }
    const GgufWriter::Bytes bytes = file.bytes();
    auto parsed = GgufFile::parse(bytes, "round trip");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const GgufFile& read = **parsed;
    EXPECT_EQ(read.file_bytes(), bytes.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto found = read.metadata().find("k" + std::to_string(i));
      ASSERT_NE(found, read.metadata().end());
      EXPECT_TRUE(found->second == values[i]) << "key k" << i;
    }
    ASSERT_EQ(read.tensors().size(), tensors);
    for (size_t i = 0; i < tensors; ++i) {
      const GgufWriter::Tensor& want = file.tensors()[i];
      const GgufTensorInfo* got = read.find_tensor(want.name);
      ASSERT_EQ(got, &read.tensors()[i]);
      EXPECT_EQ(static_cast<uint32_t>(got->type), want.type);
      EXPECT_TRUE(std::equal(got->dims.begin(), got->dims.end(), want.dims.begin(), want.dims.end()));
      const auto data = read.tensor_data(*got);
      EXPECT_TRUE(std::equal(data.begin(), data.end(), want.data.begin(), want.data.end()));
      EXPECT_EQ(data.empty() ? 0 : reinterpret_cast<uintptr_t>(data.data()) % 8, 0u);
    }
    EXPECT_EQ(read.find_tensor("t"), nullptr);
    EXPECT_EQ(read.find_tensor("zz"), nullptr);
  }
}

TEST(GgufRoundTrip, ArraysComeBackTyped) {
  GgufWriter file;
  file.set_strings("strings", {"", "a", "größer"});
  file.set_i32s("ints", {-1, 0, 2147483647});
  file.set_u8s("bytes", {0, 255});
  file.set_f32s("floats", {0.5f, -2.0f});
  file.set_bools("bools", {true, false, true});
  file.set_strings("none", {});
  auto parsed = GgufFile::parse(file.bytes(), "arrays");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& m = (*parsed)->metadata();
  EXPECT_EQ(std::get<std::vector<std::string_view>>(m.at("strings")),
            (std::vector<std::string_view>{"", "a", "größer"}));
  EXPECT_EQ(std::get<std::vector<int64_t>>(m.at("ints")), (std::vector<int64_t>{-1, 0, 2147483647}));
  EXPECT_EQ(std::get<std::vector<int64_t>>(m.at("bytes")), (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(std::get<std::vector<double>>(m.at("floats")), (std::vector<double>{0.5, -2.0}));
  EXPECT_EQ(std::get<std::vector<bool>>(m.at("bools")), (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(std::get<std::vector<std::string_view>>(m.at("none")).empty());
}

TEST(GgufAccess, KindsAreCheckedAndKeysNamed) {
  GgufWriter file;
  file.set_u8("byte", 7);
  file.set_i64("negative", -5);
  file.set_u64("huge", ~uint64_t{0});
  file.set_u64("inexact", (uint64_t{1} << 53) + 1);
  file.set_string("text", "x");
  file.set_bool("flag", true);
  file.set_f32("half", 0.5f);
  auto parsed = GgufFile::parse(file.bytes(), "access.gguf");
  ASSERT_TRUE(parsed.ok());
  const GgufFile& f = **parsed;
  EXPECT_EQ(*f.get_int("byte"), 7);
  EXPECT_EQ(*f.get_int("negative"), -5);
  EXPECT_EQ(*f.get_float("byte"), 7.0);
  EXPECT_EQ(*f.get_float("negative"), -5.0);
  EXPECT_EQ(*f.get_float("half"), 0.5);
  EXPECT_EQ(*f.get_bool("flag"), true);
  EXPECT_EQ(*f.get_string("text"), "x");
  EXPECT_TRUE(f.has("text"));
  EXPECT_FALSE(f.has("tex"));
  EXPECT_EQ(f.get_int("absent").status().code(), StatusCode::kNotFound);
  const Status failures[] = {f.get_int("huge").status(),    f.get_float("inexact").status(),
                             f.get_int("text").status(),    f.get_int("half").status(),
                             f.get_float("text").status(),  f.get_bool("byte").status(),
                             f.get_string("flag").status(), f.get_int("flag").status()};
  for (const Status& status : failures) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status_message(status).find("access.gguf: key '"), std::string::npos) << status;
  }
}

TEST(GgufTypes, NamesOfUnreadableTypes) {
  EXPECT_EQ(ggml_type_traits(4), nullptr);
  EXPECT_NE(ggml_type_name(4).find("Q4_2 (removed"), std::string::npos);
  EXPECT_EQ(ggml_type_name(17), "IQ2_XS");
  EXPECT_EQ(ggml_type_name(77), "type 77");
  EXPECT_EQ(ggml_type_name(3), "Q4_1");
}

}  // namespace
}  // namespace omnibus
