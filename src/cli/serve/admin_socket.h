// The Unix socket of --admin-listen auto.
#pragma once

#include <cstdint>
#include <string>

#include "omnibus/base/common/status.h"

namespace omnibus {

// run/admin-<port>.sock under OMNIBUS_HOME, in a folder that exists then and that only this user can enter.
StatusOr<std::string> make_admin_socket_path(uint16_t port);

}  // namespace omnibus
