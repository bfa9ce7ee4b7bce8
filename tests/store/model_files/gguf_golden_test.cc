// Files written by the `gguf` package read as the package reads them (tests/oracles/gguf_goldens.py).
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "omnibus/store/model_files/gguf.h"

namespace omnibus {
namespace {

using nlohmann::json;

std::string golden_path(const std::string& name) {
  return std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/goldens/gguf/" + name;
}

json golden() {
  std::ifstream in(golden_path("golden.json"));
  return json::parse(in);
}

// The package's value in our terms, printed; integers stand in the golden as strings.
std::string printed(const GgufValue& value) {
  struct Printer {
    json operator()(int64_t v) const { return std::to_string(v); }
    json operator()(uint64_t v) const { return std::to_string(v); }
    json operator()(double v) const { return v; }
    json operator()(bool v) const { return v; }
    json operator()(std::string_view v) const { return v; }
    json operator()(const std::vector<int64_t>& v) const { return v; }
    json operator()(const std::vector<double>& v) const { return v; }
    json operator()(const std::vector<bool>& v) const { return v; }
    json operator()(const std::vector<std::string_view>& v) const { return v; }
  };
  return std::visit(Printer{}, value).dump();
}

TEST(GgufGolden, EveryPairAndTensorAsThePackageReadsIt) {
  const json all = golden();
  for (const auto& [name, want] : all["files"].items()) {
    SCOPED_TRACE(name);
    auto opened = GgufFile::open(golden_path(name));
    ASSERT_TRUE(opened.ok()) << opened.status();
    const GgufFile& file = **opened;
    EXPECT_EQ(file.version(), want["version"].get<uint32_t>());
    ASSERT_EQ(file.metadata().size(), want["pairs"].size());
    for (const auto& [key, pair] : want["pairs"].items()) {
      const auto found = file.metadata().find(key);
      ASSERT_NE(found, file.metadata().end()) << key;
      EXPECT_EQ(printed(found->second), pair["value"].dump()) << key;
    }
    ASSERT_EQ(file.tensors().size(), want["tensors"].size());
    for (const json& tensor : want["tensors"]) {
      const GgufTensorInfo* got = file.find_tensor(tensor["name"].get<std::string>());
      ASSERT_NE(got, nullptr) << tensor["name"];
      EXPECT_EQ(ggml_type_name(static_cast<uint32_t>(got->type)), tensor["type"]);
      EXPECT_EQ(json(got->dims), tensor["dims"]);
      EXPECT_EQ(got->offset, tensor["offset"].get<uint64_t>());
      std::string hex;
      for (const uint8_t byte : file.tensor_data(*got)) hex += fmt::format("{:02x}", byte);
      EXPECT_EQ(hex, tensor["hex"].get<std::string>()) << tensor["name"];
    }
  }
}

TEST(GgufGolden, BlockSizesAndNamesOfEveryType) {
  int readable = 0;
  const json all = golden();
  for (const auto& [name, sizes] : all["sizes"].items()) {
    const uint32_t id = sizes[0].get<uint32_t>();
    EXPECT_EQ(ggml_type_name(id), name);
    const GgmlTypeTraits* traits = ggml_type_traits(id);
    if (traits == nullptr) continue;
    ++readable;
    EXPECT_EQ(traits->block_elements, sizes[1].get<int32_t>()) << name;
    EXPECT_EQ(traits->block_bytes, sizes[2].get<int32_t>()) << name;
  }
  EXPECT_EQ(readable, 18);
}

}  // namespace
}  // namespace omnibus
