// Text of a server, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace omnibus::client {

// Control characters (C0, DEL, C1) and bytes that are not UTF-8 become \xHH: a server that is measured must
// not steer the terminal. Everything else stays as it is.
std::string printable(std::string_view text);

}  // namespace omnibus::client
