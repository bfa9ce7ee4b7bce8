// Unicode normalisation form C in time O(n log n) for every input.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// `text` must be valid UTF-8. Returns `text` itself when it is ASCII, else a view of `buffer`.
std::string_view to_nfc(std::string_view text, std::string& buffer);

}  // namespace omnibus
