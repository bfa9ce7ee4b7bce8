// Log lines are handed to a thread of their own, so that nobody waits for the reader of stderr: where it does
// not read, the oldest lines are dropped, and a line says how many.
#pragma once

#include <cstdint>

namespace omnibus {

// Until what was logged is written, or for half a second. exit() does it, too: this is for who leaves the
// process by another way, or writes to stderr itself. Any thread.
void flush_log();
// Lines dropped because stderr was not read in time.
int64_t dropped_log_lines();

}  // namespace omnibus
