#include "omnibus/base/common/small_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "omnibus/base/common/fd.h"

namespace omnibus {
namespace {

Status failed(int error) { return absl::InvalidArgumentError(std::strerror(error)); }

Status check_kind(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return failed(errno);
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError("it is a directory");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("it is not a regular file");
  return {};
}

}  // namespace

StatusOr<std::string> read_small_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for a writer.
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return failed(errno);
  OMNIBUS_RETURN_IF_ERROR(check_kind(file.get()));
  std::string bytes;
  char block[1 << 14];
  for (;;) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got == 0) return bytes;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    bytes.append(block, static_cast<size_t>(got));
    if (bytes.size() > kMaxSmallFileBytes) return absl::InvalidArgumentError("it is larger than 1 MiB");
  }
}

}  // namespace omnibus
