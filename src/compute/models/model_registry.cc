#include "omnibus/compute/models/model_registry.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "llama_family.h"

namespace omnibus {
namespace {

constexpr std::array kRegistry{
    ModelRegistryEntry{"llama", make_llama_family},  // also mistral and smollm files
    ModelRegistryEntry{"qwen2", make_llama_family},
    ModelRegistryEntry{"qwen3", make_llama_family},
};

}  // namespace

std::span<const ModelRegistryEntry> model_registry() { return kRegistry; }

StatusOr<std::unique_ptr<Model>> make_model(const ModelContext& context) {
  std::string built;
  for (const ModelRegistryEntry& entry : kRegistry) {
    if (entry.architecture == context.config.architecture) return entry.make(context);
    built += fmt::format("{}{}", built.empty() ? "" : ", ", entry.architecture);
  }
  return absl::UnimplementedError(
      fmt::format("architecture '{}' is not built; those that are: {}", context.config.architecture, built));
}

}  // namespace omnibus
