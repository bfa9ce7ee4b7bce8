// Hashes for Content-Security-Policy.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// "'sha256-<base64>'": lets a page run or use exactly this inline script or style (CSP level 3, hash-source).
std::string csp_hash(std::string_view text);

}  // namespace omnibus
