// Splits a template's source into tokens, with trim_blocks and lstrip_blocks on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "value.h"

namespace omnibus::jinja {

enum class TokenKind : uint8_t {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string text;  // name, operator, data, or the string's value
  Value number;      // of kInteger and kFloat

  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// The last token is kEnd. Throws TemplateError (kSyntax) with the line.
std::vector<Token> tokenize(std::string_view source);

[[noreturn]] void fail_syntax(uint32_t line, const std::string& message);

}  // namespace omnibus::jinja
