// What a server says of itself once it serves.
#pragma once

#include <string>

#include "omnibus/cli/served_model.h"

#include "listeners.h"

namespace omnibus {

// A table on stdout.
void print_start_table(const AsyncEngine& engine, const ServedModel& model, const Listeners& listeners);

}  // namespace omnibus
