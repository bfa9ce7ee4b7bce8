// The socket that a listener accepts on: TCP, or a Unix socket in the file system.
#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <sys/types.h>

#include "omnibus/base/common/status.h"

namespace omnibus {

namespace asio = boost::asio;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

// Binds and listens. Errors name host and port. `port` becomes the one that was bound, `loopback` whether it
// can be reached from this machine only.
Status listen_on_tcp(const std::string& host, uint16_t& port, Acceptor& acceptor, bool& loopback);

// The file of a Unix socket; removed with this object, if it is still there.
class UnixSocketFile {
 public:
  UnixSocketFile() = default;
  ~UnixSocketFile() { remove(); }
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;

  // Binds and listens; only this user may connect. A socket that nobody listens on any more is replaced, any
  // other file is left alone. Errors name the path.
  Status listen(const std::string& path, Acceptor& acceptor);
  void remove();

 private:
  std::string path_;  // empty: there is none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace omnibus
