#include "byte_alphabet.h"

#include "utf8.h"

namespace omnibus {
namespace {

constexpr char32_t kFirstMoved = 0x100;
constexpr int kMoved = 68;

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> text;
  std::array<uint8_t, kMoved> moved{};  // U+0100 + i -> byte

  Alphabet() {
    size_t next = 0;
    for (int byte = 0; byte < 256; ++byte) {
      char32_t code = static_cast<char32_t>(byte);
      if (!stands_for_itself(byte)) {
        code = kFirstMoved + static_cast<char32_t>(next);
        moved[next++] = static_cast<uint8_t>(byte);
      }
      append_utf8(code, text[static_cast<size_t>(byte)]);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() { return alphabet().text; }

std::optional<std::string> bytes_of_alphabet_text(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = next_utf8(text.substr(i));
    if (!step.valid) return std::nullopt;
    if (step.code >= kFirstMoved && step.code < kFirstMoved + kMoved) {
      bytes.push_back(static_cast<char>(alphabet().moved[step.code - kFirstMoved]));
    } else if (step.code < 0x100 && stands_for_itself(static_cast<int>(step.code))) {
      bytes.push_back(static_cast<char>(step.code));
    } else {
      return std::nullopt;
    }
    i += step.length;
  }
  return bytes;
}

}  // namespace omnibus
