#include "store_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "omnibus/store/model_store/model_store.h"

namespace omnibus {
namespace {

StatusOr<Fd> lock(const std::string& home, int operation) {
  OMNIBUS_RETURN_IF_ERROR(make_folders(home));
  Fd lock(open((home + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock.valid()) return absl::UnavailableError(errno_text("cannot write in", home));
  while (flock(lock.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) {
      return with_detail(absl::UnavailableError("the model store is being changed; try again later"),
                         ErrorDetail{.http = 503, .type = {}, .code = kStoreBusy, .param = {}});
    }
    if (errno != EINTR) return absl::UnavailableError(errno_text("cannot lock", home));
  }
  return lock;
}

}  // namespace

StatusOr<Fd> lock_store(const std::string& home) { return lock(home, LOCK_EX); }

StatusOr<Fd> try_lock_store(const std::string& home) { return lock(home, LOCK_EX | LOCK_NB); }

}  // namespace omnibus
