#include "listening_socket.h"

#include <cerrno>
#include <cstring>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace omnibus {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;
constexpr int kBacklog = 4096;
constexpr size_t kMaxUnixPath = sizeof(sockaddr_un{}.sun_path) - 1;

Status cannot(const char* what, const std::string& host, uint16_t port, const error_code& error) {
  return absl::UnavailableError(fmt::format("Cannot {} {} port {}: {}", what, host, port, error.message()));
}

Status cannot_listen(const std::string& path, const std::string& why) {
  return absl::UnavailableError(fmt::format("Cannot listen on the Unix socket '{}': {}", path, why));
}

bool anybody_listens(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool dead = connected != 0 && (errno == ECONNREFUSED || errno == ENOENT);
  ::close(fd);
  return !dead;
}

// Makes room at `path`.
Status clear_way(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status() : cannot_listen(path, std::strerror(errno));
  }
  if (!S_ISSOCK(info.st_mode)) return cannot_listen(path, "there is a file of that name, which is no socket");
  if (anybody_listens(path)) return cannot_listen(path, "another process listens there");
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return cannot_listen(path, std::strerror(errno));
}

}  // namespace

Status listen_on_tcp(const std::string& host, uint16_t& port, Acceptor& acceptor, bool& loopback) {
  error_code error;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(host, std::to_string(port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) return cannot("resolve", host, port, error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (error) return cannot("open a socket for", host, port, error);
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) return cannot("listen on", host, port, error);
  tcp::endpoint bound;
  const auto actual = acceptor.local_endpoint(error);
  if (error) return cannot("listen on", host, port, error);
  bound.resize(actual.size());
  std::memcpy(bound.data(), actual.data(), actual.size());
  port = bound.port();
  loopback = bound.address().is_loopback();
  return {};
}

Status UnixSocketFile::listen(const std::string& path, Acceptor& acceptor) {
  if (path.size() > kMaxUnixPath) {
    return cannot_listen(path, fmt::format("the path has more than {} bytes", kMaxUnixPath));
  }
  OMNIBUS_RETURN_IF_ERROR(clear_way(path));
  error_code error;
  const asio::local::stream_protocol::endpoint endpoint(path);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (error) return cannot_listen(path, error.message());
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return cannot_listen(path, std::strerror(errno));
  path_ = path;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  // Before it listens: until then nobody can connect, whatever the process's mask has left open.
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) return cannot_listen(path, std::strerror(errno));
  acceptor.listen(kBacklog, error);
  return error ? cannot_listen(path, error.message()) : Status();
}

void UnixSocketFile::remove() {
  struct stat info {};
  // Another server may have taken the name meanwhile.
  const bool ours =
      !path_.empty() && ::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  if (ours) ::unlink(path_.c_str());
  path_.clear();
}

}  // namespace omnibus
