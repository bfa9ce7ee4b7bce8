// Manifests: one JSON object per model in the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/store/model_store/model_store.h"

namespace omnibus {

// Where a model's manifest lies, relative to the store; `name` has passed check_model_name.
std::string manifest_path(const std::string& name);
// Where a blob lies, relative to the store.
std::string blob_path(const std::string& digest);

// A digest is computed again only when the blob is not the file that was checked last.
struct CheckedBlob {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  bool operator==(const CheckedBlob&) const = default;
};

struct Manifest {
  StoredModel model;  // path left empty
  CheckedBlob checked;
};

std::string write_manifest(const Manifest& manifest);
// Errors name the key.
StatusOr<Manifest> read_manifest(const std::string& text);
// The manifest at `relative` in the store, with path and time of its last change. Errors name the file.
StatusOr<Manifest> load_manifest(const std::string& home, const std::string& relative);

}  // namespace omnibus
