// The lock that everybody takes who changes a store.
#pragma once

#include <string>

#include "omnibus/base/common/status.h"

#include "paths.h"

namespace omnibus {

// Waits for whoever has it, also in another process (a pull has it for its whole download); makes the store's
// folder when there is none. Held until the Fd is closed.
StatusOr<Fd> lock_store(const std::string& home);
// The same without waiting: UNAVAILABLE with code kStoreBusy while somebody has it.
StatusOr<Fd> try_lock_store(const std::string& home);

}  // namespace omnibus
