#include "file_mapping.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "omnibus/base/common/fd.h"

namespace omnibus::model_files {
namespace {

std::string reason(int error) {
  char buffer[128];
  return strerror_r(error, buffer, sizeof buffer);
}

Status open_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(fmt::format("{}: no such file", path));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(fmt::format("{}: {}", path, reason(error)));
    case EXDEV:
    case ELOOP:
      return absl::InvalidArgumentError(fmt::format(
          "{}: a symbolic link that leads out of its folder or in a circle; name the file itself", path));
    default:
      return absl::UnavailableError(fmt::format("{}: cannot be opened: {}", path, reason(error)));
  }
}

// O_NONBLOCK: opening a FIFO must not wait for a writer. Kernels and sandboxes without openat2 refuse every
// symbolic link instead.
int open_beneath(int folder, const char* name) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int fd = static_cast<int>(::syscall(SYS_openat2, folder, name, &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
  return ::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
}

Status check_kind(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode)) {
    if (info.st_size > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}: the file is empty", path));
  }
  const char* kind = S_ISDIR(info.st_mode)    ? "a directory"
                     : S_ISFIFO(info.st_mode) ? "a FIFO"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  return absl::InvalidArgumentError(fmt::format("{}: is {}, not a regular file", path, kind));
}

}  // namespace

StatusOr<std::unique_ptr<FileMapping>> FileMapping::open(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the path of the model file is empty");
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the path of the model file holds a NUL byte");
  }
  const size_t slash = path.find_last_of('/');
  const std::string folder_path = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "..") {
    return absl::InvalidArgumentError(fmt::format("{}: is a directory, not a regular file", path));
  }
  const Fd folder(::open(folder_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return open_error(path, errno);
  const Fd file(open_beneath(folder.get(), name.c_str()));
  if (file.get() < 0) {
    // A socket cannot be opened at all; every other kind is told apart after opening.
    if (errno == ENXIO) {
      return absl::InvalidArgumentError(fmt::format("{}: is a socket, not a regular file", path));
    }
    return open_error(path, errno);
  }
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return open_error(path, errno);
  OMNIBUS_RETURN_IF_ERROR(check_kind(path, info));
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return absl::UnavailableError(fmt::format("{}: cannot be mapped: {}", path, reason(errno)));
  }
  return std::unique_ptr<FileMapping>(new FileMapping(static_cast<const uint8_t*>(data), size));
}

FileMapping::~FileMapping() { ::munmap(const_cast<uint8_t*>(data_), size_); }

void FileMapping::release(uint64_t begin, uint64_t end) const {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin >= end || end > size_) return;
  ::madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace omnibus::model_files
