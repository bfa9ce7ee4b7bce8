// The program's version.
#pragma once

namespace omnibus {

const char* version();  // "0.1.0"

}  // namespace omnibus
