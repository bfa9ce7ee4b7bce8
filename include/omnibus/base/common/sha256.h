// SHA-256 (FIPS 180-4), of OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace omnibus {

using Digest256 = std::array<uint8_t, 32>;

// Any thread; never fails.
Digest256 sha256(std::span<const std::byte> bytes);
Digest256 sha256(std::string_view text);

}  // namespace omnibus
