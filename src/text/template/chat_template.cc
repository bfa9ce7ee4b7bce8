#include "omnibus/text/template/chat_template.h"

#include <algorithm>
#include <exception>
#include <new>

#include <nlohmann/json.hpp>

#include "omnibus/base/common/clock.h"

#include "globals.h"
#include "message_adapter.h"
#include "program.h"

namespace omnibus {
namespace {

using jinja::TemplateError;

// Some templates look through all messages for each of them (five of llama.cpp's corpus, at about 2 steps a
// pair).
constexpr int64_t kStepsPerPair = 4;
constexpr int64_t kManyMessages = 100;           // with fewer the pairs are nothing beside the budget
constexpr int64_t kMostExtraSteps = 32'000'000;  // a second of work, which the budget of time cuts anyway

RenderOptions with_steps_for(RenderOptions options, size_t messages) {
  const auto n = static_cast<int64_t>(messages);
  if (n < kManyMessages) return options;
  options.budget.steps += std::min(n * n * kStepsPerPair, kMostExtraSteps);
  return options;
}

Status to_status(const TemplateError& error) {
  const std::string message = error.what();
  switch (error.kind()) {
    case TemplateError::Kind::kSyntax:
      return absl::InvalidArgumentError("chat template: " + message);
    // The author's own words: "Conversation roles must alternate …".
    case TemplateError::Kind::kRaised:
      return invalid_field("messages", message, "template_error");
    default:
      return invalid_field("messages", "chat template: " + message, "template_error");
  }
}

// Exceptions end here: nothing of a template may reach the caller but a Status.
template <typename F>
auto guarded(F f) -> decltype(f()) {
  try {
    return f();
  } catch (const TemplateError& error) {
    return to_status(error);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("chat template: out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("chat template: ") + error.what());
  }
}

class CompiledTemplate final : public ChatTemplate {
 public:
  CompiledTemplate(std::string source, std::unique_ptr<const jinja::Program> program)
      : source_(std::move(source)),
        program_(std::move(program)),
        shape_(jinja::probe_shape(*program_, source_)) {}

  StatusOr<RenderedPrompt> render(const nlohmann::ordered_json& variables,
                                  const RenderOptions& asked) const override {
    OMNIBUS_RETURN_IF_ERROR(check(variables));
    const RenderOptions options = with_steps_for(asked, variables["messages"].size());
    return guarded([&]() -> StatusOr<RenderedPrompt> {
      if (jinja::messages_fit(shape_, variables)) return jinja::run_program(*program_, variables, options);
      OMNIBUS_ASSIGN_OR_RETURN(const nlohmann::ordered_json adapted,
                               jinja::adapt_messages(shape_, variables));
      return jinja::run_program(*program_, adapted, options);
    });
  }

  const std::string& source() const override { return source_; }

 private:
  static Status check(const nlohmann::ordered_json& variables) {
    if (!variables.is_object()) return absl::InvalidArgumentError("template variables must be a JSON object");
    const auto messages = variables.find("messages");
    if (messages == variables.end() || !messages->is_array())
      return invalid_field("messages", "must be an array", "missing_required_parameter");
    for (const auto& [name, unused] : variables.items()) {
      const bool reserved = name == "bos_token" || name == "eos_token" || name == "add_generation_prompt";
      if (reserved || jinja::find_global(name) != nullptr)
        return invalid_field(name, "is set by the server and cannot be a template variable");
    }
    return {};
  }

  const std::string source_;
  const std::unique_ptr<const jinja::Program> program_;
  const jinja::TemplateShape shape_;
};

}  // namespace

std::vector<TextSegment> RenderedPrompt::segments() const {
  std::vector<TextSegment> out;
  out.reserve(ranges.size());
  const std::string_view view = text;
  for (const Range& range : ranges)
    out.push_back({view.substr(range.begin, range.end - range.begin), range.trusted});
  return out;
}

StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::compile(std::string_view source) {
  return guarded([&]() -> StatusOr<std::shared_ptr<const ChatTemplate>> {
    return std::shared_ptr<const ChatTemplate>(
        std::make_shared<CompiledTemplate>(std::string(source), jinja::Program::compile(source)));
  });
}

const char kChatMlTemplate[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

RenderOptions render_options_for(const Tokenizer& tokenizer) {
  const auto text_of = [&](TokenId id) {
    return id == kNoToken ? std::string() : std::string(tokenizer.token_bytes(id));
  };
  RenderOptions options;
  options.bos_token = text_of(tokenizer.spec().bos);
  options.eos_token = text_of(tokenizer.spec().eos);
  options.now_seconds = wall_clock_seconds();
  return options;
}

}  // namespace omnibus
