// RegexSplitter: one splitting pattern, compiled by PCRE2 with its JIT. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"

#include "byte_range.h"

struct pcre2_real_code_8;

namespace omnibus {

class RegexSplitter {
 public:
  // `pattern` is in PCRE2 syntax; \s and \S mean Unicode's White_Space, as in Oniguruma (PCRE2's own \s also
  // takes U+180E). Inside a class only \s may occur.
  static StatusOr<RegexSplitter> create(std::string_view pattern);

  // The first match in `text` (valid UTF-8) at or after `from`; an empty range at text.size() if none.
  ByteRange find(std::string_view text, size_t from) const;

 private:
  explicit RegexSplitter(std::shared_ptr<pcre2_real_code_8> code, bool jit)
      : code_(std::move(code)), jit_(jit) {}

  std::shared_ptr<pcre2_real_code_8> code_;
  bool jit_;
};

}  // namespace omnibus
