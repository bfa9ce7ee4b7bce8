// The whole program behind main().
#pragma once

#include <string>
#include <vector>

namespace omnibus {

// `args` without the program's name. Returns the exit code: 0, 1 for a failure, 2 for a wrong command line.
int run_program(const std::vector<std::string>& args);

}  // namespace omnibus
