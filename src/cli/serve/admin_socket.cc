#include "admin_socket.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "omnibus/base/config/option_set.h"
#include "omnibus/store/model_store/model_store.h"

namespace omnibus {
namespace {

Status cannot_use(const std::string& folder, const std::string& why) {
  return absl::UnavailableError(fmt::format("cannot use the folder '{}': {}", folder, why));
}

}  // namespace

StatusOr<std::string> make_admin_socket_path(uint16_t port) {
  OMNIBUS_ASSIGN_OR_RETURN(const std::string home, ModelStore::default_home(process_environment()));
  const std::string folder = home + "/run";
  std::error_code error;
  std::filesystem::create_directories(home, error);
  if (error) return cannot_use(home, error.message());
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return cannot_use(folder, std::strerror(errno));
  }
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return cannot_use(folder, std::strerror(errno));
  // Whoever else can write there could put a socket of his own in our place.
  if (!S_ISDIR(info.st_mode)) return cannot_use(folder, "it is no folder");
  if (info.st_uid != ::geteuid()) return cannot_use(folder, "it belongs to another user");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0 && ::chmod(folder.c_str(), S_IRWXU) != 0) {
    return cannot_use(folder, std::strerror(errno));
  }
  return fmt::format("{}/admin-{}.sock", folder, port);
}

}  // namespace omnibus
