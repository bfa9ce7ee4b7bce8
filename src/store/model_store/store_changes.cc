// Changes of a store that is there: copy, remove, blobs that clients bring. Only checked names and digests
// become paths; what is made or deleted lies beneath the store's folder, behind no link.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <unordered_set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "omnibus/store/model_store/model_store.h"

#include "digest.h"
#include "manifest.h"
#include "paths.h"
#include "store_lock.h"

namespace omnibus {
namespace {

// "manifests/x/latest.json" as folder and file.
std::pair<std::string, std::string> split_path(const std::string& relative) {
  const size_t slash = relative.rfind('/');
  return {relative.substr(0, slash), relative.substr(slash + 1)};
}

Status write_manifest_of(const std::string& home, const Manifest& manifest) {
  const auto [folder, file] = split_path(manifest_path(manifest.model.name));
  OMNIBUS_ASSIGN_OR_RETURN(const Fd at, open_folder_beneath(home, folder, /*create=*/true));
  return write_file_in(at, file, write_manifest(manifest));
}

// What is not there is removed already.
Status remove_beneath(const std::string& home, const std::string& relative) {
  const auto [folder, file] = split_path(relative);
  const auto at = open_folder_beneath(home, folder, /*create=*/false);
  if (at.status().code() == StatusCode::kNotFound) return {};
  if (!at.ok()) return at.status();
  if (unlinkat(at->get(), file.c_str(), 0) == 0 || errno == ENOENT) return {};
  return absl::UnavailableError(errno_text("cannot delete", home + "/" + relative));
}

// A blob that no manifest names any more goes.
Status remove_unnamed_blob(const ModelStore& store, const std::string& digest) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto models, store.list());
  const bool named =
      std::any_of(models.begin(), models.end(), [&](const StoredModel& m) { return m.digest == digest; });
  return named ? Status() : remove_beneath(store.home(), blob_path(digest));
}

// Bytes of the blobs that no manifest names. Those that cannot be looked at do not count.
StatusOr<uint64_t> unnamed_blob_bytes(const ModelStore& store) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto models, store.list());
  std::unordered_set<std::string> named;
  for (const StoredModel& model : models) named.insert(split_path(blob_path(model.digest)).second);
  uint64_t total = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(store.home() + "/blobs", error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    if (named.count(it->path().filename().string()) != 0) continue;
    if (lstat(it->path().c_str(), &info) == 0) total += static_cast<uint64_t>(info.st_size);
  }
  return total;
}

Status check_room(const ModelStore& store, uint64_t bytes, uint64_t most) {
  OMNIBUS_ASSIGN_OR_RETURN(const uint64_t unnamed, unnamed_blob_bytes(store));
  if (unnamed <= most && bytes <= most - unnamed) return {};
  return with_detail(
      absl::ResourceExhaustedError(fmt::format("the store has {} bytes of blobs that no model names; {} more "
                                               "would be over the limit of {}",
                                               unnamed, bytes, most)),
      ErrorDetail{.http = 507, .type = {}, .code = kStoreFull, .param = "digest"});
}

StatusOr<StoredModel> find_exactly(const ModelStore& store, const std::string& name) {
  OMNIBUS_RETURN_IF_ERROR(check_model_name(name));
  OMNIBUS_ASSIGN_OR_RETURN(auto models, store.list());
  for (StoredModel& model : models) {
    if (model.name == name) return std::move(model);
  }
  return absl::NotFoundError(fmt::format("no model '{}' in the store", name));
}

}  // namespace

Status ModelStore::copy(const std::string& source, const std::string& destination) const {
  OMNIBUS_RETURN_IF_ERROR(check_model_name(destination));
  OMNIBUS_ASSIGN_OR_RETURN(const Fd lock, try_lock_store(home_));
  OMNIBUS_ASSIGN_OR_RETURN(const StoredModel model, find_exactly(*this, source));
  if (manifest_path(source) == manifest_path(destination)) return {};
  OMNIBUS_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(home_, manifest_path(source)));
  std::string replaced;
  if (const auto old = load_manifest(home_, manifest_path(destination)); old.ok()) {
    replaced = old->model.digest;
  }
  manifest.model.name = destination;
  manifest.model.aliases.clear();
  OMNIBUS_RETURN_IF_ERROR(write_manifest_of(home_, manifest));
  return replaced.empty() ? Status() : remove_unnamed_blob(*this, replaced);
}

Status ModelStore::remove(const std::string& name) const {
  OMNIBUS_ASSIGN_OR_RETURN(const Fd lock, try_lock_store(home_));
  OMNIBUS_ASSIGN_OR_RETURN(const StoredModel model, find_exactly(*this, name));
  OMNIBUS_RETURN_IF_ERROR(remove_beneath(home_, manifest_path(model.name)));
  // The folder of the name goes with its last tag; when it is not empty it stays.
  const std::string folder = split_path(split_path(manifest_path(model.name)).first).second;
  if (const auto manifests = open_folder_beneath(home_, "manifests", false); manifests.ok()) {
    (void)unlinkat(manifests->get(), folder.c_str(), AT_REMOVEDIR);
  }
  return remove_unnamed_blob(*this, model.digest);
}

StatusOr<bool> ModelStore::has_blob(const std::string& digest) const {
  if (!is_digest(digest)) return absl::InvalidArgumentError("a digest has 64 lower-case hex digits");
  const auto blobs = open_folder_beneath(home_, "blobs", /*create=*/false);
  if (blobs.status().code() == StatusCode::kNotFound) return false;
  if (!blobs.ok()) return blobs.status();
  struct stat info {};
  const std::string name = split_path(blob_path(digest)).second;
  if (fstatat(blobs->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return absl::UnavailableError(errno_text("cannot read", home_ + "/" + blob_path(digest)));
  }
  if (S_ISREG(info.st_mode)) return true;
  return absl::PermissionDeniedError(fmt::format("'{}/{}' is not a plain file", home_, blob_path(digest)));
}

Status ModelStore::add_blob(const std::string& digest, std::string_view bytes,
                            uint64_t max_unnamed_bytes) const {
  if (!is_digest(digest)) return absl::InvalidArgumentError("a digest has 64 lower-case hex digits");
  OMNIBUS_ASSIGN_OR_RETURN(const Fd lock, try_lock_store(home_));
  OMNIBUS_RETURN_IF_ERROR(check_room(*this, bytes.size(), max_unnamed_bytes));
  OMNIBUS_ASSIGN_OR_RETURN(const Fd tmp, open_folder_beneath(home_, "tmp", /*create=*/true));
  const std::string part = "blob-" + digest;
  OMNIBUS_RETURN_IF_ERROR(write_file_in(tmp, part, bytes));
  // What counts is what the disk has.
  const auto refuse = [&](const Status& why) {
    (void)unlinkat(tmp.get(), part.c_str(), 0);
    return why;
  };
  const auto written = open_beneath(home_, "tmp/" + part);
  if (!written.ok()) return refuse(written.status());
  const auto actual = sha256_of_fd(written->get());
  if (!actual.ok()) return refuse(actual.status());
  if (*actual != digest) {
    return refuse(absl::InvalidArgumentError(
        fmt::format("digest mismatch: the content has sha256:{}, not sha256:{}", *actual, digest)));
  }
  const auto blobs = open_folder_beneath(home_, "blobs", /*create=*/true);
  if (!blobs.ok()) return refuse(blobs.status());
  const std::string name = split_path(blob_path(digest)).second;
  if (renameat(tmp.get(), part.c_str(), blobs->get(), name.c_str()) != 0) {
    return refuse(absl::UnavailableError(errno_text("cannot write", home_ + "/" + blob_path(digest))));
  }
  return {};
}

bool is_blob_digest(std::string_view text) { return is_digest(text); }

StatusOr<std::string> digest_of_file(const std::string& path, const std::stop_token& stop) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::NotFoundError(errno_text("cannot open", path));
  return sha256_of_fd(fd.get(), {}, stop);
}

}  // namespace omnibus
