// Runs one program to its end, without a shell.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/base/common/status.h"

namespace omnibus {

struct Subprocess {
  std::vector<std::string> argv;                                 // argv[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  std::string stdout_path;                                       // file for its output; "": discarded
  std::function<void()> while_running;                           // called about five times a second
};

// Waits. The child dies with this process. Not OK: it could not be started (NOT_FOUND), or ended other than
// with exit code 0 (UNAVAILABLE, with the end of its stderr).
Status run_subprocess(const Subprocess& command);

}  // namespace omnibus
