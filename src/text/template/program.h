// A compiled template: nodes, names, and the rules for running it on raw variables.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ast.h"

namespace omnibus::jinja {

class Program {
 public:
  // Throws TemplateError (kSyntax).
  static std::unique_ptr<const Program> compile(std::string_view source);

  const Body& body() const { return body_; }
  size_t symbol_count() const { return symbols_.size(); }
  const std::vector<TextPtr>& symbols() const { return symbols_; }

 private:
  friend class Parser;
  Program() = default;

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<TextPtr> symbols_;
  Body body_;
};

// Runs `program` on `variables` exactly as given: no adaptation of messages. Throws TemplateError.
RenderedPrompt run_program(const Program& program, const nlohmann::ordered_json& variables,
                           const RenderOptions& options);

}  // namespace omnibus::jinja
