// What the golden tests of the template engine share.
#pragma once

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "omnibus/text/template/chat_template.h"

#include "program.h"

namespace omnibus::jinja::testing {

using Json = nlohmann::ordered_json;

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// `name` in the committed goldens, or the file that the environment variable `instead` names (larger runs by
// hand).
inline Json read_golden(const std::string& name, const char* instead = nullptr) {
  if (const char* path = instead == nullptr ? nullptr : std::getenv(instead))
    return Json::parse(read_file(path));
  return Json::parse(read_file(std::string(OMNIBUS_SOURCE_DIR) + "/tests/data/goldens/template/" + name));
}

// The moment that the goldens were made for, in UTC.
inline RenderOptions golden_options() {
  setenv("TZ", "UTC", 1);
  tzset();
  RenderOptions options;
  options.now_seconds = 1752743103;
  options.budget.milliseconds = 60'000;  // a loaded machine is no failure here
  return options;
}

struct Outcome {
  std::optional<RenderedPrompt> prompt;  // nothing: the engine refused
  std::string error;
};

// Exactly what Jinja2 was asked: no adaptation of messages. Template variables that are the server's in a
// real request move into the options.
inline Outcome render_raw(const std::string& source, Json variables,
                          RenderOptions options = golden_options()) {
  if (const auto v = variables.find("bos_token"); v != variables.end()) options.bos_token = *v;
  if (const auto v = variables.find("eos_token"); v != variables.end()) options.eos_token = *v;
  options.add_generation_prompt = variables.value("add_generation_prompt", true);
  for (const char* name : {"bos_token", "eos_token", "add_generation_prompt"}) variables.erase(name);
  try {
    const auto program = Program::compile(source);
    return {run_program(*program, variables, options), ""};
  } catch (const TemplateError& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace omnibus::jinja::testing
