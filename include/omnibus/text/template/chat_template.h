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

// What one render may spend (SECURITY.md: chat templates).
struct TemplateBudget {
  int64_t steps = 1'000'000;  // operations, items visited; copies cost 1 per 4 KiB. And 4 for each
                              // pair of 100 messages or more, at most 32 million
  int64_t output_bytes = int64_t{4} << 20;  // of the result and of each text on the way; memory: 32 times
  int32_t depth = 100;                      // of macro calls and recursive loops
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

// Those of a model: the texts of its bos and eos ("" where it has none), and the time of now.
RenderOptions render_options_for(const Tokenizer& tokenizer);

// Immutable; any thread.
class ChatTemplate {
 public:
  // Syntax errors name line and construct. Renders a few short probes.
  static StatusOr<std::shared_ptr<const ChatTemplate>> compile(std::string_view source);
  virtual ~ChatTemplate() = default;

  // `variables`: JSON object with messages (required), tools, documents and template kwargs; all of it
  // untrusted, except messages[i].role when it equals one of system, user, assistant, tool, developer,
  // ipython, function. Names that the server sets (bos_token, eos_token, add_generation_prompt) and names of
  // functions (range, namespace, raise_exception, …) are refused.
  //
  // Messages may have any of OpenAI's shapes; they are brought into the one that the template takes, as
  // probes at compile time found out: content as string or parts (joined with newlines; a part that is no
  // text is refused by place), tool-call arguments as object or JSON text, null content beside tool calls as
  // "", an assistant's reasoning under the key that the template reads (reasoning_content, reasoning,
  // thinking).
  //
  // raise_exception (the message is the template's), budget overruns and type errors are INVALID_ARGUMENT:
  // the caller's 400.
  virtual StatusOr<RenderedPrompt> render(const nlohmann::ordered_json& variables,
                                          const RenderOptions& options) const = 0;
  virtual const std::string& source() const = 0;
};

// The template of files that carry none.
extern const char kChatMlTemplate[];

}  // namespace omnibus
