// ModelRegistry: architecture name -> factory. One row per architecture that is built; a
// test demands a tiny model for each.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/models/model.h"

namespace omnibus {

struct ModelRegistryEntry {
  std::string_view architecture;  // general.architecture
  std::unique_ptr<Model> (*make)(const ModelContext& context);
};
std::span<const ModelRegistryEntry> model_registry();

// UNIMPLEMENTED names the architecture and those that are built.
StatusOr<std::unique_ptr<Model>> make_model(const ModelContext& context);

}  // namespace omnibus
