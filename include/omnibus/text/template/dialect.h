// Dialect: how a family of models writes what is more than plain text; today its reasoning. A dialect is
// data: one file a family in configs/dialects, compiled in (docs/dialects.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/text/template/chat_template.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

// The markers of reasoning. Among those that are looked for at the same time (open and drop; close) none
// occurs inside another, so that the first that is complete is the right one, however the text arrives.
struct ReasoningFormat {
  std::vector<std::string> open, close;  // >= 1 each
  std::vector<std::string> drop;         // beside the answer, part of neither
  std::string trim;     // characters that are no part of either text when they stand next to a marker
  bool repeat = false;  // a later block is reasoning, too; otherwise text like any other
};

// Where an answer begins.
enum class ReasoningStart {
  kBefore,  // a block may still be opened
  kInside,  // the prompt has opened it
  kClosed,  // the prompt has opened and closed it: all is content
};

// How the output of one request is split; no format: it is not.
struct ReasoningSplit {
  std::shared_ptr<const ReasoningFormat> format;
  ReasoningStart start = ReasoningStart::kBefore;
};

struct Dialect {
  std::string name;                      // the file's
  std::vector<std::string> aliases;      // other servers' names for it
  std::vector<std::string> in_template;  // any of these in a template's source means this family
  std::vector<std::string> tokens;       // likewise, any of these in the vocabulary
  std::shared_ptr<const ReasoningFormat> reasoning;
};

// `text` is a dialect file. Errors are INVALID_ARGUMENT and name `name` and the key.
StatusOr<Dialect> parse_dialect(std::string_view name, std::string_view text);

// Those of configs/dialects, by name. Any thread.
std::span<const std::shared_ptr<const Dialect>> builtin_dialects();

// The dialect that `choice` means: a name or an alias; "none": null; "auto": the family whose marks the
// template's source or, failing that, the vocabulary shows (of several, that of the longest mark), null when
// none does. Errors name the choices.
StatusOr<std::shared_ptr<const Dialect>> select_dialect(std::string_view choice,
                                                        std::string_view template_source,
                                                        const Tokenizer& tokenizer);

// Where an answer to `prompt` begins, by what the template wrote at its end. A client's text decides nothing.
ReasoningStart reasoning_start(const ReasoningFormat& format, const RenderedPrompt& prompt);
// Where an answer goes on that begins with `text`, which a client wrote in the model's name.
ReasoningStart reasoning_start_behind(const std::shared_ptr<const ReasoningFormat>& format,
                                      std::string_view text);

}  // namespace omnibus
