#include "paths.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace omnibus {
namespace {

// For kernels or sandboxes without openat2: one component at a time, none of them a link.
int open_by_components(int folder, const std::string& relative) {
  Fd current(dup(folder));
  for (size_t begin = 0; begin < relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string part = relative.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      errno = EXDEV;
      return -1;
    }
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (end < relative.size() ? O_DIRECTORY : 0);
    Fd next(openat(current.get(), part.c_str(), flags));
    if (!next.valid()) return -1;
    current = std::move(next);
    begin = end + 1;
  }
  return current.release();
}

}  // namespace

std::string errno_text(std::string_view what, const std::string& path) {
  return fmt::format("{} '{}': {}", what, path, std::strerror(errno));
}

StatusOr<Fd> open_beneath(const std::string& folder, const std::string& relative) {
  const Fd base(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!base.valid()) return absl::NotFoundError(errno_text("cannot open", folder));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd fd(static_cast<int>(syscall(SYS_openat2, base.get(), relative.c_str(), &how, sizeof how)));
  if (!fd.valid() && (errno == ENOSYS || errno == EPERM)) fd = Fd(open_by_components(base.get(), relative));
  if (!fd.valid()) {
    const std::string message = errno_text("cannot open", folder + "/" + relative);
    return errno == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(fmt::format("'{}/{}' is not a plain file", folder, relative));
  }
  return fd;
}

StatusOr<Fd> open_folder_beneath(const std::string& folder, const std::string& relative, bool create) {
  Fd current(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!current.valid()) return absl::NotFoundError(errno_text("cannot open", folder));
  // A component at a time, none of them a link: each opens beneath the one before it.
  for (size_t begin = 0; begin < relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string part = relative.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return absl::InvalidArgumentError(fmt::format("'{}' is no folder of a store", relative));
    }
    if (create && mkdirat(current.get(), part.c_str(), 0700) != 0 && errno != EEXIST) {
      return absl::UnavailableError(errno_text("cannot make", folder + "/" + relative));
    }
    Fd next(openat(current.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!next.valid()) {
      const std::string message = errno_text("cannot open", folder + "/" + relative);
      return errno == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
    }
    current = std::move(next);
    begin = end + 1;
  }
  return current;
}

Status write_file_in(const Fd& folder, const std::string& name, std::string_view text) {
  const std::string part = fmt::format("{}.{}.part", name, getpid());
  Fd fd(openat(folder.get(), part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return absl::UnavailableError(errno_text("cannot write", part));
  const auto fail = [&](const std::string& path) {
    Status status = absl::UnavailableError(errno_text("cannot write", path));
    (void)unlinkat(folder.get(), part.c_str(), 0);
    return status;
  };
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(part);
    done += static_cast<size_t>(n);
  }
  if (fsync(fd.get()) != 0 || renameat(folder.get(), part.c_str(), folder.get(), name.c_str()) != 0) {
    return fail(name);
  }
  return {};
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  const size_t slash = path.rfind('/');
  const std::string parent = path.substr(0, slash);
  const Fd folder(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return absl::UnavailableError(errno_text("cannot write in", parent));
  return write_file_in(folder, path.substr(slash + 1), text);
}

Status make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return absl::UnavailableError(fmt::format("cannot make the folder '{}': {}", path, error.message()));
  return {};
}

}  // namespace omnibus
