#include "store_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

namespace omnibus {

StatusOr<Fd> lock_store(const std::string& home) {
  OMNIBUS_RETURN_IF_ERROR(make_folders(home));
  Fd lock(open((home + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock.valid()) return absl::UnavailableError(errno_text("cannot write in", home));
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return absl::UnavailableError(errno_text("cannot lock", home));
  }
  return lock;
}

}  // namespace omnibus
