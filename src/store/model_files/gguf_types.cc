#include <array>

#include <fmt/format.h>

#include "omnibus/store/model_files/gguf.h"

namespace omnibus {
namespace {

struct Entry {
  uint32_t id;
  GgmlTypeTraits traits;
};

constexpr std::array<Entry, 18> kReadable = {{
    {0, {"F32", 1, 4}},
    {1, {"F16", 1, 2}},
    {2, {"Q4_0", 32, 18}},
    {3, {"Q4_1", 32, 20}},
    {6, {"Q5_0", 32, 22}},
    {7, {"Q5_1", 32, 24}},
    {8, {"Q8_0", 32, 34}},
    {10, {"Q2_K", 256, 84}},
    {11, {"Q3_K", 256, 110}},
    {12, {"Q4_K", 256, 144}},
    {13, {"Q5_K", 256, 176}},
    {14, {"Q6_K", 256, 210}},
    {24, {"I8", 1, 1}},
    {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},
    {27, {"I64", 1, 8}},
    {28, {"F64", 1, 8}},
    {30, {"BF16", 1, 2}},
}};

struct Name {
  uint32_t id;
  const char* name;
};

// Ids that occur in files of others but are not read here; the removed ones say so.
constexpr std::array<Name, 25> kUnreadable = {{
    {4, "Q4_2 (removed from the format)"},
    {5, "Q4_3 (removed from the format)"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {20, "IQ4_NL"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {23, "IQ4_XS"},
    {29, "IQ1_M"},
    {31, "Q4_0_4_4 (removed from the format)"},
    {32, "Q4_0_4_8 (removed from the format)"},
    {33, "Q4_0_8_8 (removed from the format)"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4 (removed from the format)"},
    {37, "IQ4_NL_4_8 (removed from the format)"},
    {38, "IQ4_NL_8_8 (removed from the format)"},
    {39, "MXFP4"},
    {40, "NVFP4"},
    {41, "Q1_0"},
    {42, "Q2_0"},
}};

}  // namespace

const GgmlTypeTraits* ggml_type_traits(uint32_t type_id) {
  for (const Entry& entry : kReadable) {
    if (entry.id == type_id) return &entry.traits;
  }
  return nullptr;
}

std::string ggml_type_name(uint32_t type_id) {
  if (const GgmlTypeTraits* traits = ggml_type_traits(type_id)) return traits->name;
  for (const Name& entry : kUnreadable) {
    if (entry.id == type_id) return entry.name;
  }
  return fmt::format("type {}", type_id);
}

}  // namespace omnibus
