// The alphabet of byte-level BPE: every byte as one printable character. 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF
// stand for themselves; the other 68 bytes, in ascending order, are U+0100, U+0101, ...
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace omnibus {

// Byte -> its character, in UTF-8.
const std::array<std::string, 256>& byte_alphabet();

// The bytes that a vocabulary entry stands for; nullopt when a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet_text(std::string_view text);

}  // namespace omnibus
