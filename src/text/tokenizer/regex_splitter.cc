#include "regex_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace omnibus {
namespace {

constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackMax = 1024 * 1024;

// What one thread needs to run any pattern.
class MatchState {
 public:
  MatchState()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr)) {
    pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  ~MatchState() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  pcre2_match_data* data() { return data_; }
  pcre2_match_context* context() { return context_; }

 private:
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

std::string expand_whitespace(std::string_view pattern) {
  constexpr std::string_view kWhitespace = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view pair = pattern.substr(i, 2);
    if (pair == R"(\s)" && in_class) {
      out.append(kWhitespace);
    } else if (pair == R"(\s)" || pair == R"(\S)") {
      out.append(pair == R"(\s)" ? "[" : "[^").append(kWhitespace).append("]");
    } else if (pattern[i] == '\\') {
      out.append(pair);
    } else {
      if (pattern[i] == '[') in_class = true;
      if (pattern[i] == ']') in_class = false;
      out.push_back(pattern[i]);
      continue;
    }
    ++i;
  }
  return out;
}

}  // namespace

StatusOr<RegexSplitter> RegexSplitter::create(std::string_view pattern) {
  const std::string expanded = expand_whitespace(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()), expanded.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return absl::InternalError("pre-tokenizer pattern '" + expanded + "', offset " + std::to_string(offset) +
                               ": " + reinterpret_cast<const char*>(message));
  }
  const bool jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  return RegexSplitter(std::shared_ptr<pcre2_code>(code, pcre2_code_free), jit);
}

ByteRange RegexSplitter::find(std::string_view text, size_t from) const {
  thread_local MatchState state;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int result = PCRE2_ERROR_JIT_STACKLIMIT;
  if (jit_) {
    result = pcre2_jit_match(code_.get(), subject, text.size(), from, 0, state.data(), state.context());
  }
  if (!jit_ || (result < 0 && result != PCRE2_ERROR_NOMATCH)) {
    result = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         state.data(), nullptr);
  }
  // A resource limit leaves the rest in one piece: no text is ever lost.
  if (result < 0) return {text.size(), text.size()};
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data());
  return {range[0], range[1]};
}

}  // namespace omnibus
