#include "lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "string_literal.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

constexpr std::array<std::string_view, 24> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-",
                                                         "/",  "*",  "%",  "~",  "[",  "]",  "(", ")",
                                                         "{",  "}",  ">",  "<",  "=",  ".",  ":", "|"};

// \r\n and \r become \n; one newline at the end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), view_(source_) {}

  std::vector<Token> run() {
    while (at_ < view_.size()) text_and_tag();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool starts(size_t at, std::string_view what) const { return view_.substr(at, what.size()) == what; }
  size_t skip_space(size_t at) const {
    while (at < view_.size()) {
      const CodePoint c = decode_at(view_, at);
      if (!is_space(c.value)) break;
      at += c.bytes;
    }
    return at;
  }
  void push(TokenKind kind, std::string_view text) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = text;
    tokens_.push_back(std::move(token));
  }
  // Moves to `to`, counting lines.
  void advance(size_t to) {
    for (; at_ < to; ++at_)
      if (view_[at_] == '\n') ++line_;
  }

  // Whitespace control in front of a tag that starts at `tag`; returns where the text before it ends.
  size_t text_end(size_t begin, size_t tag, char sign, bool may_lstrip) const {
    size_t end = tag;
    if (sign == '-') {
      while (end > begin) {
        const CodePoint c = decode_before(view_.substr(0, end), end);
        if (c.bytes > end - begin || !is_space(c.value)) break;
        end -= c.bytes;
      }
      return end;
    }
    if (sign == '+' || !may_lstrip) return end;
    const size_t newline = view_.substr(begin, tag - begin).rfind('\n');
    const size_t line = newline == std::string_view::npos ? begin : begin + newline + 1;
    if (line == begin && !line_starting_) return end;
    return skip_space(line) >= tag && line < tag ? line : end;
  }

  char sign_at(size_t at) const {
    return at < view_.size() && (view_[at] == '-' || view_[at] == '+') ? view_[at] : '\0';
  }

  void data(size_t begin, size_t end) {
    if (end > begin) push(TokenKind::kData, view_.substr(begin, end - begin));
  }

  void text_and_tag() {
    const size_t begin = at_;
    size_t tag = begin;
    for (;; ++tag) {
      tag = view_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= view_.size()) {
        data(begin, view_.size());
        advance(view_.size());
        return;
      }
      const char next = view_[tag + 1];
      if (next == '%' || next == '{' || next == '#') break;
    }
    const char type = view_[tag + 1];
    const char sign = sign_at(tag + 2);
    data(begin, text_end(begin, tag, sign, type != '{'));
    const size_t inside = tag + 2 + (sign != 0 ? 1 : 0);
    if (type == '%' && raw_block(inside)) return;
    advance(inside);
    if (type == '#') {
      comment();
    } else {
      push(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
      tag_tokens(type == '{');
    }
  }

  // Length of an end of tag ("-%}" with the space behind it, "+%}", "%}" with one newline) at `at`, or 0.
  size_t tag_end(size_t at, char type) const {
    const char mark[] = {type == '{' ? '}' : type, '}', 0};
    const bool variable = type == '{';
    if (starts(at, mark)) {
      const size_t end = at + 2;
      return !variable && end < view_.size() && view_[end] == '\n' ? 3 : 2;
    }
    if (at < view_.size() && view_[at] == '-' && starts(at + 1, mark)) return skip_space(at + 3) - at;
    if (!variable && at < view_.size() && view_[at] == '+' && starts(at + 1, mark)) return 3;
    return 0;
  }

  void finish_tag(size_t length) {
    advance(at_ + length);
    line_starting_ = view_[at_ - 1] == '\n';
  }

  void comment() {
    for (size_t at = at_; at < view_.size(); ++at) {
      if (const size_t length = tag_end(at, '#'); length != 0) {
        advance(at);
        return finish_tag(length);
      }
    }
    fail_syntax(line_, "Missing end of comment tag");
  }

  // After "{%" and its sign: a raw block is taken whole.
  bool raw_block(size_t inside) {
    size_t at = skip_space(inside);
    if (!starts(at, "raw")) return false;
    at = skip_space(at + 3);
    size_t body = 0;
    if (starts(at, "%}"))
      body = at + 2;
    else if (starts(at, "-%}"))
      body = skip_space(at + 3);
    else
      return false;
    advance(body);
    line_starting_ = body > 0 && view_[body - 1] == '\n';
    for (size_t tag = view_.find("{%", body); tag != std::string_view::npos;
         tag = view_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      size_t end = skip_space(tag + 2 + (sign != 0 ? 1 : 0));
      if (!starts(end, "endraw")) continue;
      end = skip_space(end + 6);
      const size_t length = tag_end(end, '%');
      if (length == 0) continue;
      data(body, text_end(body, tag, sign, true));
      advance(end);
      finish_tag(length);
      return true;
    }
    fail_syntax(line_, "Missing end of raw directive");
  }

  void tag_tokens(bool variable) {
    std::string open;  // brackets that wait for their partner
    while (at_ < view_.size()) {
      if (open.empty()) {
        if (const size_t length = tag_end(at_, variable ? '{' : '%'); length != 0) {
          push(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
          return finish_tag(length);
        }
      }
      const CodePoint c = decode_at(view_, at_);
      if (is_space(c.value)) {
        advance(at_ + c.bytes);
      } else if (c.value >= '0' && c.value <= '9') {
        number();
      } else if (is_word(c.value)) {
        name(c);
      } else if (c.value == '\'' || c.value == '"') {
        string(static_cast<char>(c.value));
      } else {
        op(open);
      }
    }
    // The parser reports what it misses.
  }

  void name(CodePoint first) {
    if (!is_identifier_start(first.value)) fail_syntax(line_, "Invalid character in identifier");
    size_t end = at_;
    while (end < view_.size()) {
      const CodePoint c = decode_at(view_, end);
      if (!is_word(c.value)) break;
      end += c.bytes;
    }
    push(TokenKind::kName, view_.substr(at_, end - at_));
    advance(end);
  }

  // Digits with single underscores between them, from `at`; `at` itself when there are none.
  size_t digits(size_t at) const {
    size_t end = at;
    while (end < view_.size()) {
      const bool digit = std::isdigit(static_cast<unsigned char>(view_[end])) != 0;
      const bool joint = view_[end] == '_' && end > at && end + 1 < view_.size() && view_[end - 1] != '_' &&
                         std::isdigit(static_cast<unsigned char>(view_[end + 1])) != 0;
      if (!digit && !joint) break;
      ++end;
    }
    return end;
  }

  // End of a float literal at at_, or 0.
  size_t float_end() const {
    if (at_ > 0 && view_[at_ - 1] == '.') return 0;
    size_t end = digits(at_);
    bool is_float = false;
    if (end < view_.size() && view_[end] == '.' && digits(end + 1) > end + 1) {
      end = digits(end + 1);
      is_float = true;
    }
    if (end < view_.size() && (view_[end] == 'e' || view_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < view_.size() && (view_[exponent] == '+' || view_[exponent] == '-')) ++exponent;
      if (digits(exponent) > exponent) return digits(exponent);
    }
    return is_float ? end : 0;
  }

  void number() {
    if (const size_t end = float_end(); end != 0) {
      std::string text(view_.substr(at_, end - at_));
      std::erase(text, '_');
      push(TokenKind::kFloat, text);
      tokens_.back().number = std::strtod(text.c_str(), nullptr);
      return advance(end);
    }
    size_t end = at_;
    unsigned base = 10;
    if (view_[at_] == '0' && at_ + 1 < view_.size()) {
      const char mark = static_cast<char>(std::tolower(static_cast<unsigned char>(view_[at_ + 1])));
      base = mark == 'b' ? 2 : (mark == 'o' ? 8 : (mark == 'x' ? 16 : 10));
    }
    if (base != 10) {
      end += 2;
      while (end < view_.size() && (digit_of(view_[end]) < base || view_[end] == '_')) ++end;
      if (end == at_ + 2) base = 10, end = at_ + 1;  // "0x": a zero and a name
    } else if (view_[at_] == '0') {
      while (end < view_.size() && (view_[end] == '0' || view_[end] == '_')) ++end;
    } else {
      end = digits(at_);
    }
    Integer value = 0;
    for (size_t i = at_ + (base == 10 ? 0 : 2); i < end; ++i) {
      if (view_[i] == '_') continue;
      if (__builtin_mul_overflow(value, static_cast<Integer>(base), &value) ||
          __builtin_add_overflow(value, static_cast<Integer>(digit_of(view_[i])), &value))
        fail_syntax(line_, "integer literal too large");
    }
    push(TokenKind::kInteger, view_.substr(at_, end - at_));
    tokens_.back().number = value;
    advance(end);
  }

  static unsigned digit_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return 99;
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < view_.size() && view_[end] != quote) end += view_[end] == '\\' ? 2 : 1;
    if (end >= view_.size()) fail_syntax(line_, "a string literal does not end");
    std::string value;
    if (const char* error = unescape(view_.substr(at_ + 1, end - at_ - 1), value); error != nullptr)
      fail_syntax(line_, error);
    push(TokenKind::kString, value);
    advance(end + 1);
  }

  void op(std::string& open) {
    std::string_view found;
    for (const std::string_view candidate : kOperators)
      if (starts(at_, candidate)) {
        found = candidate;
        break;
      }
    if (found.empty() && (view_[at_] == ',' || view_[at_] == ';')) found = view_.substr(at_, 1);
    if (found.empty()) fail_syntax(line_, std::string("unexpected char '") + view_[at_] + "'");
    if (found == "{")
      open.push_back('}');
    else if (found == "(")
      open.push_back(')');
    else if (found == "[")
      open.push_back(']');
    else if (found == "}" || found == ")" || found == "]") {
      if (open.empty()) fail_syntax(line_, "unexpected '" + std::string(found) + "'");
      if (open.back() != found[0])
        fail_syntax(line_, "unexpected '" + std::string(found) + "', expected '" + open.back() + "'");
      open.pop_back();
    }
    push(TokenKind::kOperator, found);
    advance(at_ + found.size());
  }

  const std::string source_;
  const std::string_view view_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalize_newlines(source)).run(); }

void fail_syntax(uint32_t line, const std::string& message) {
  throw TemplateError(TemplateError::Kind::kSyntax, "line " + std::to_string(line) + ": " + message);
}

}  // namespace omnibus::jinja
