#include "manifest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "paths.h"

namespace omnibus {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargestManifest = 1 << 20;

Status wrong(const char* key, const char* what) {
  return absl::DataLossError(fmt::format("key '{}' {}", key, what));
}

StatusOr<std::string> text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return wrong(key, "must be a string");
  return it->get<std::string>();
}

StatusOr<uint64_t> count_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) return wrong(key, "must be a whole number");
  return it->get<uint64_t>();
}

StatusOr<std::string> read_text(const Fd& fd, const std::string& path) {
  std::string text(kLargestManifest + 1, '\0');
  const ssize_t n = pread(fd.get(), text.data(), text.size(), 0);
  if (n < 0 || static_cast<size_t>(n) > kLargestManifest) {
    return absl::DataLossError(fmt::format("'{}' cannot be read as a manifest", path));
  }
  text.resize(static_cast<size_t>(n));
  return text;
}

}  // namespace

std::string manifest_path(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string tag = colon == std::string::npos ? "latest" : name.substr(colon + 1);
  return "manifests/" + name.substr(0, colon) + "/" + tag + ".json";
}

std::string blob_path(const std::string& digest) { return "blobs/sha256-" + digest; }

std::string write_manifest(const Manifest& manifest) {
  const StoredModel& model = manifest.model;
  Json json;
  json["name"] = model.name;
  json["aliases"] = model.aliases;
  json["file"] = model.file_name;
  json["digest"] = "sha256:" + model.digest;
  json["bytes"] = model.bytes;
  json["license"] = model.license;
  json["source"] = model.source;
  json["checked_bytes"] = manifest.checked.bytes;
  json["checked_modified_ns"] = static_cast<uint64_t>(manifest.checked.modified_ns);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<Manifest> read_manifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::DataLossError("is not a JSON object");
  Manifest out;
  StoredModel& model = out.model;
  OMNIBUS_ASSIGN_OR_RETURN(model.name, text_of(json, "name"));
  OMNIBUS_RETURN_IF_ERROR(check_model_name(model.name));
  OMNIBUS_ASSIGN_OR_RETURN(model.file_name, text_of(json, "file"));
  OMNIBUS_ASSIGN_OR_RETURN(const std::string digest, text_of(json, "digest"));
  if (!digest.starts_with("sha256:") || !is_digest(digest.substr(7))) {
    return wrong("digest", "must be sha256: and 64 hex digits");
  }
  model.digest = digest.substr(7);
  OMNIBUS_ASSIGN_OR_RETURN(model.bytes, count_of(json, "bytes"));
  OMNIBUS_ASSIGN_OR_RETURN(model.license, text_of(json, "license"));
  OMNIBUS_ASSIGN_OR_RETURN(model.source, text_of(json, "source"));
  OMNIBUS_ASSIGN_OR_RETURN(out.checked.bytes, count_of(json, "checked_bytes"));
  OMNIBUS_ASSIGN_OR_RETURN(const uint64_t modified, count_of(json, "checked_modified_ns"));
  out.checked.modified_ns = static_cast<int64_t>(modified);
  const auto aliases = json.find("aliases");
  if (aliases == json.end() || !aliases->is_array()) return wrong("aliases", "must be an array");
  for (const auto& alias : *aliases) {
    if (!alias.is_string()) return wrong("aliases", "must hold strings");
    model.aliases.push_back(alias.get<std::string>());
  }
  return out;
}

StatusOr<Manifest> load_manifest(const std::string& home, const std::string& relative) {
  OMNIBUS_ASSIGN_OR_RETURN(const Fd fd, open_beneath(home, relative));
  const std::string path = home + "/" + relative;
  OMNIBUS_ASSIGN_OR_RETURN(const std::string text, read_text(fd, path));
  auto manifest = read_manifest(text);
  if (!manifest.ok()) {
    return absl::DataLossError(fmt::format("manifest '{}': {}", path, status_message(manifest.status())));
  }
  manifest->model.path = home + "/" + blob_path(manifest->model.digest);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return absl::DataLossError(errno_text("cannot read", path));
  manifest->model.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return manifest;
}

}  // namespace omnibus
