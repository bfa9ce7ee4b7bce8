// omnibus-replay --script FILE [any option of `omnibus serve`]: the real server around a scripted worker.
#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/cli/serve.h"

#include "fakes/replay_script.h"
#include "fakes/replay_worker.h"

namespace omnibus {
namespace {

// The scheduler plans the step after next on the understanding that each step gives a request one token.
Status resolve_async(const fakes::ReplayScript& script, ServeConfig& config) {
  const bool several = std::any_of(script.behaviours.begin(), script.behaviours.end(), [](const auto& b) {
    return std::any_of(b.k.begin(), b.k.end(), [](int32_t k) { return k > 1; });
  });
  if (!several) return {};
  if (config.engine.async_scheduling.value_or(false))
    return absl::InvalidArgumentError(
        "--script: k > 1 gives several tokens a step, which --async-scheduling cannot plan ahead of");
  config.engine.async_scheduling = false;
  return {};
}

StatusOr<ServedModel> replay_model(const std::string& path, ServeConfig config) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("--script: cannot read '{}'", path));
  std::ostringstream text;
  text << in.rdbuf();
  OMNIBUS_ASSIGN_OR_RETURN(fakes::ReplayScript script, fakes::parse_replay_script(text.str()));
  OMNIBUS_RETURN_IF_ERROR(resolve_async(script, config));
  ServedModel model;
  model.name = "replay";
  model.description = fmt::format("{} behaviours", script.behaviours.size());
  model.engine = engine_config_of(config.engine, config.engine.max_model_len.value_or(script.max_model_len));
  model.engine.check_integrity = true;
  model.tokenizer = script.tokenizer;
  model.defaults = script.sampling;
  OMNIBUS_ASSIGN_OR_RETURN(model.chat_template,
                           load_chat_template(config.chat_template_file, script.chat_template));
  model.worker = std::make_unique<fakes::ReplayWorker>(std::move(script));
  return model;
}

// The command line, the environment and the files it names. `help`: not empty when only that was asked for.
StatusOr<ServeConfig> read_config(const std::vector<std::string>& args, std::string& script,
                                  std::string& help) {
  ServeConfig config;
  OptionSet options("omnibus-replay", "Serve scripted answers");
  options.add("script", script, "FILE", "What the model says (JSON, a behaviour a line)");
  declare_options(options, config);
  const std::array<OptionSet*, 1> sets = {&options};
  OMNIBUS_ASSIGN_OR_RETURN(
      const ParseResult parsed,
      parse_options({"omnibus-replay", "omnibus-replay: a server with a scripted model", false}, sets, args,
                    process_environment()));
  help = parsed.help;
  if (help.empty()) OMNIBUS_RETURN_IF_ERROR(finish_serve_config(config));
  return config;
}

int run(const std::vector<std::string>& args) {
  block_hangup();
  std::string script, help;
  const auto config = read_config(args, script, help);
  if (!config.ok()) {
    fmt::print(stderr, "omnibus-replay: {}\n", status_message(config.status()));
    return 2;
  }
  if (!help.empty()) {
    fmt::print("{}", help);
    return 0;
  }
  init_log(config->log.level, config->log.format);
  ServeProgram program;
  program.open_model = [&] { return replay_model(script, *config); };
  program.read_config = [&]() -> StatusOr<ServeConfig> {
    std::string same_script, no_help;
    return read_config(args, same_script, no_help);
  };
  return serve(*config, program);
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) { return omnibus::run({argv + 1, argv + argc}); }
