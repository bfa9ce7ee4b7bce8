// The options of `serve` that say who may reach it: keys, hosts, origins, certificates.
#pragma once

#include "omnibus/base/config/commands.h"

namespace omnibus {

void declare_security(OptionSet& options, ServeConfig& config);
// Fills `keys` and `warnings`; errors name the flag, and never a key.
Status finish_security(ServeConfig& config);

}  // namespace omnibus
