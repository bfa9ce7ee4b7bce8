// Fetching one catalogue entry into a store.
#pragma once

#include <string>

#include "omnibus/store/model_store/model_store.h"

#include "catalog.h"

namespace omnibus {

// Downloads, unpacks, checks and installs, unless the store has the model whole by the time the lock is ours.
// The manifest appears last, so that a pull that dies leaves nothing that could be taken for a model.
StatusOr<StoredModel> pull_entry(const std::string& home, const CatalogEntry& entry,
                                 const PullOptions& options);

}  // namespace omnibus
