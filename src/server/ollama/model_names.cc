#include "model_names.h"

#include <algorithm>

namespace omnibus {
namespace {

constexpr std::string_view kRegistry = "registry.ollama.ai/", kNamespace = "library/", kTag = ":latest";

char lower_of(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool has_tag(std::string_view name) {
  const size_t slash = name.rfind('/');
  return name.find(':', slash == std::string_view::npos ? 0 : slash) != std::string_view::npos;
}

}  // namespace

std::string canonical_model_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = lower_of(c);
  std::string_view rest = local_model_name(lower);
  if (rest.ends_with(kTag)) rest.remove_suffix(kTag.size());
  return std::string(rest);
}

std::string_view local_model_name(std::string_view name) {
  for (const std::string_view prefix : {kRegistry, kNamespace}) {
    const bool there = name.size() >= prefix.size() &&
                       std::equal(prefix.begin(), prefix.end(), name.begin(),
                                  [](char expected, char c) { return expected == lower_of(c); });
    if (there) name.remove_prefix(prefix.size());
  }
  return name;
}

bool same_model_name(std::string_view a, std::string_view b) {
  return canonical_model_name(a) == canonical_model_name(b);
}

std::string name_with_tag(std::string_view name) {
  std::string out(name);
  if (!has_tag(name)) out += kTag;
  return out;
}

std::string name_for_error(std::string_view name) {
  constexpr size_t kMost = 200;
  if (name.size() <= kMost) return std::string(name);
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // no half character
  return std::string(name.substr(0, end)) + "...";
}

}  // namespace omnibus
