#include "stored_names.h"

#include "model_names.h"

namespace omnibus {

void StoredNames::set(const StatusOr<std::vector<StoredModel>>& models) {
  auto next = std::make_shared<Snapshot>();
  next->status = models.status();
  if (models.ok()) {
    // A name goes before an alias of the same spelling, and the first of two models before the second.
    for (const StoredModel& model : *models) {
      next->digests.emplace(canonical_model_name(model.name), model.digest);
    }
    for (const StoredModel& model : *models) {
      for (const std::string& alias : model.aliases) {
        next->digests.emplace(canonical_model_name(alias), model.digest);
      }
    }
  }
  const std::lock_guard lock(mutex_);
  snapshot_ = std::move(next);
}

StatusOr<std::optional<std::string>> StoredNames::digest_of(std::string_view name) const {
  const auto snapshot = [this] {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }();
  OMNIBUS_RETURN_IF_ERROR(snapshot->status);
  const auto found = snapshot->digests.find(canonical_model_name(name));
  if (found == snapshot->digests.end()) return std::optional<std::string>();
  return std::optional<std::string>(found->second);
}

}  // namespace omnibus
