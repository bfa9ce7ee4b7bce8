// The one exception of the template engine. It never leaves the module: ChatTemplate turns it into a Status.
#pragma once

#include <stdexcept>
#include <string>

namespace omnibus::jinja {

class TemplateError : public std::runtime_error {
 public:
  enum class Kind {
    kSyntax,     // the source is not a template
    kRuntime,    // type errors, undefined values, wrong arguments
    kRaised,     // the template called raise_exception: the message is the template author's
    kBudget,     // steps, bytes, depth or time ran out
    kVariables,  // the variables are not what a template may be given
  };
  TemplateError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

[[noreturn]] inline void fail(const std::string& message) {
  throw TemplateError(TemplateError::Kind::kRuntime, message);
}

}  // namespace omnibus::jinja
