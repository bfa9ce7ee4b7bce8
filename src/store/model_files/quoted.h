// Names from a file, made fit for an error message.
#pragma once

#include <string>
#include <string_view>

namespace omnibus::model_files {

// 'name' in quotes; bytes outside printable ASCII as \xHH; at most 64 bytes of it.
std::string quoted(std::string_view name);

}  // namespace omnibus::model_files
