// The meta device's table.
#pragma once

#include "omnibus/compute/ops/op_table.h"

namespace omnibus {

const OpTable& meta_table();

}  // namespace omnibus
