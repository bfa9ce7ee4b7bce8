// ChatTemplate: a model's Jinja chat template, compiled once, rendered per request in a sandbox with budgets.
// Every character of the result knows whether the template wrote it (trusted) or a client (untrusted).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "omnibus/base/common/status.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

struct TemplateBudget {
  int64_t steps = 1'000'000;
  int64_t output_bytes = int64_t{4} << 20;
  int32_t depth = 100;
  int64_t milliseconds = 1000;
};

// Text with provenance. The segments of `segments()` view `text`.
struct RenderedPrompt {
  std::string text;
  struct Range {
    size_t begin = 0, end = 0;
    bool trusted = false;
  };
  std::vector<Range> ranges;  // cover text in order, without gaps; neighbours differ in trust

  std::vector<TextSegment> segments() const;
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;
  int64_t now_seconds = 0;  // for strftime_now; wall clock, local time
  TemplateBudget budget;
};

// Immutable; any thread.
class ChatTemplate {
 public:
  // Syntax errors name line and construct.
  static StatusOr<std::shared_ptr<const ChatTemplate>> compile(std::string_view source);
  virtual ~ChatTemplate() = default;

  // `variables`: JSON object with messages (required), tools, documents and template kwargs; all of it
  // untrusted, except role names that equal one of system, user, assistant, tool, developer. raise_exception,
  // budget overruns and type errors are INVALID_ARGUMENT: the caller's 400. Content parts are joined first
  // when the template only concatenates strings.
  virtual StatusOr<RenderedPrompt> render(const nlohmann::ordered_json& variables,
                                          const RenderOptions& options) const = 0;
  virtual const std::string& source() const = 0;
};

// The template of files that carry none.
extern const char kChatMlTemplate[];

}  // namespace omnibus
