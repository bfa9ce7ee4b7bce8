#include "omnibus/store/model_store/model_store.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog.h"
#include "digest.h"
#include "manifest.h"
#include "paths.h"

namespace omnibus {
namespace {

namespace fs = std::filesystem;

// The blob is there and is what the manifest says. Its digest is computed only when the file is not the one
// that was checked last; then the manifest learns of the new check (or stays as it is in a read-only store).
Status check_blob(const std::string& home, Manifest& manifest) {
  const StoredModel& model = manifest.model;
  auto fd = open_beneath(home, blob_path(model.digest));
  const std::string again = fmt::format("run `omnibus pull {}` to fetch it again", model.name);
  if (!fd.ok()) {
    return absl::DataLossError(fmt::format("{}: {}; {}", model.name, status_message(fd.status()), again));
  }
  struct stat info {};
  if (fstat(fd->get(), &info) != 0) return absl::DataLossError(errno_text("cannot read", model.path));
  const CheckedBlob now = {static_cast<uint64_t>(info.st_size),
                           int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
  if (now == manifest.checked) return {};
  OMNIBUS_ASSIGN_OR_RETURN(const std::string digest, sha256_of_fd(fd->get()));
  if (digest != model.digest) {
    return absl::DataLossError(fmt::format("{}: '{}' has digest {}: it is not the file that was pulled; {}",
                                           model.name, model.path, digest, again));
  }
  manifest.checked = now;
  (void)write_file_atomically(home + "/" + manifest_path(model.name), write_manifest(manifest));
  return {};
}

bool is_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Letters in either case; the tag "latest" may be left out.
bool named(const StoredModel& model, const std::string& alias) {
  return same_name(model.name, alias) || same_name(model.name, alias + ":latest") ||
         std::any_of(model.aliases.begin(), model.aliases.end(),
                     [&](const std::string& a) { return same_name(a, alias); });
}

ResolvedModel from_path(const std::string& path) {
  ResolvedModel out;
  out.path = path;
  out.name = fs::path(path).filename().string();
  if (out.name.ends_with(".gguf")) out.name.resize(out.name.size() - 5);
  return out;
}

Status not_found(const std::string& model, const std::vector<StoredModel>& stored) {
  std::vector<std::string> names;
  for (const auto& s : stored) names.push_back(s.name);
  std::string message =
      fmt::format("no model '{}': it is neither a file nor in the store ({})", model,
                  names.empty() ? "which is empty" : fmt::format("{}", fmt::join(names, ", ")));
  if (const CatalogEntry* entry = find_in_catalog(model)) {
    message += fmt::format("; `omnibus pull {}` fetches it", entry->name);
  } else {
    message += fmt::format("; `omnibus pull` can fetch {}", fmt::join(pullable_models(), ", "));
  }
  return absl::NotFoundError(message);
}

Status no_file(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::none) {
    return absl::NotFoundError(fmt::format("no file '{}'", path));
  }
  const char* name = kind == std::filesystem::file_type::directory ? "a directory"
                     : kind == std::filesystem::file_type::fifo    ? "a FIFO"
                                                                   : "no regular file";
  return absl::InvalidArgumentError(fmt::format("'{}' is {}: a model is a GGUF file", path, name));
}

}  // namespace

Status check_model_name(std::string_view name) {
  size_t segments = 0;
  for (std::string_view rest = name;;) {
    const size_t colon = rest.find(':');
    const std::string_view segment = rest.substr(0, colon);
    const bool plain = std::all_of(segment.begin(), segment.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
             c == '_' || c == '-';
    });
    if (!plain || segment.empty() || segment.size() > 128 || segment == "." || segment == ".." ||
        ++segments > 2) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' is not a model name: NAME or NAME:TAG, each of 1 to 128 letters, digits, '.', '_' or '-'",
          name.substr(0, 200)));
    }
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
  }
}

StatusOr<std::string> ModelStore::default_home(const EnvLookup& env) {
  if (const auto home = env("OMNIBUS_HOME"); home && !home->empty()) return *home;
  if (const auto home = env("HOME"); home && !home->empty()) return *home + "/.cache/omnibus";
  return absl::FailedPreconditionError("neither OMNIBUS_HOME nor HOME is set: there is no place for models");
}

StatusOr<std::vector<StoredModel>> ModelStore::list() const {
  std::vector<StoredModel> out;
  std::error_code error;
  for (fs::directory_iterator folder(home_ + "/manifests", error), end; !error && folder != end;
       folder.increment(error)) {
    std::error_code inner;
    for (const auto& file : fs::directory_iterator(folder->path(), inner)) {
      if (file.path().extension() != ".json") continue;
      const std::string relative =
          "manifests/" + folder->path().filename().string() + "/" + file.path().filename().string();
      OMNIBUS_ASSIGN_OR_RETURN(auto manifest, load_manifest(home_, relative));
      if (manifest_path(manifest.model.name) != relative) {
        return absl::DataLossError(
            fmt::format("manifest '{}/{}' says it is '{}'", home_, relative, manifest.model.name));
      }
      out.push_back(std::move(manifest.model));
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

StatusOr<ResolvedModel> ModelStore::resolve(const std::string& model) const {
  if (is_file(model)) return from_path(model);
  const bool like_a_path = model.find('/') != std::string::npos || model.ends_with(".gguf");
  if (like_a_path) return no_file(model);
  OMNIBUS_RETURN_IF_ERROR(check_model_name(model));
  OMNIBUS_ASSIGN_OR_RETURN(const auto stored, list());
  auto found = std::find_if(stored.begin(), stored.end(), [&](const auto& s) { return s.name == model; });
  if (found == stored.end()) {
    found = std::find_if(stored.begin(), stored.end(), [&](const auto& s) { return named(s, model); });
  }
  if (found == stored.end()) return not_found(model, stored);
  OMNIBUS_ASSIGN_OR_RETURN(auto manifest, load_manifest(home_, manifest_path(found->name)));
  OMNIBUS_RETURN_IF_ERROR(check_blob(home_, manifest));
  return ResolvedModel{manifest.model.path, manifest.model.name, manifest.model.digest, true};
}

}  // namespace omnibus
