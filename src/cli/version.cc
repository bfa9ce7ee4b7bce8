#include "version.h"

namespace omnibus {

const char* version() { return OMNIBUS_VERSION; }

}  // namespace omnibus
