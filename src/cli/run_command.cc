#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "omnibus/cli/served_model.h"

#include "chat_session.h"
#include "commands.h"
#include "progress_bar.h"
#include "terminal_chat.h"

namespace omnibus {
namespace {

// What `run` takes where nothing is given: livelier than greedy, calmer than the API's 1.
constexpr float kTemperature = 0.8F;
constexpr float kTopP = 0.9F;
constexpr int32_t kTopK = 40;

// What the command line says, else the model's authors, else the program.
SamplingParams sampling_of(const RunConfig& config, const SamplingDefaults& of_model) {
  SamplingParams sampling;
  sampling.temperature = kTemperature;
  sampling.top_p = kTopP;
  sampling.top_k = kTopK;
  of_model.apply_to(sampling);
  if (config.temperature) sampling.temperature = static_cast<float>(*config.temperature);
  if (config.top_p) sampling.top_p = static_cast<float>(*config.top_p);
  sampling.top_k = config.top_k.value_or(sampling.top_k);
  sampling.max_tokens = config.max_tokens.value_or(0);
  return sampling;
}

}  // namespace

int run_command(const RunConfig& config) {
  const SteadyClock clock;
  MetricsRegistry metrics;
  std::optional<ProgressBar> bar;
  if (isatty(STDERR_FILENO) == 1)
    bar.emplace("loading " + std::filesystem::path(config.model).filename().string());
  // Before the worker is made: it plans the cache for that many.
  EngineOptions engine_options = config.engine;
  engine_options.max_num_seqs = 1;
  auto model = open_model(config.model, engine_options, config.chat_template_file,
                          [&bar](int64_t done, int64_t total) {
                            if (bar) bar->update(done, total);
                          });
  if (!model.ok()) return report_failure(model.status());
  const auto dialect = dialect_of("auto", *model);
  if (!dialect.ok()) return report_failure(dialect.status());
  auto engine = start_engine(*model, &metrics, &clock);
  if (!engine.ok()) return report_failure(engine.status());
  bar.reset();

  ChatSession session(engine->get(), model->chat_template, *dialect);
  session.set_system(config.system);
  session.sampling() = sampling_of(config, model->defaults);
  session.set_seed(config.engine.seed);
  const bool terminal = isatty(STDIN_FILENO) == 1;
  TerminalChat chat(&session, terminal);
  if (!config.prompt_words.empty())
    return chat.answer_once(fmt::format("{}", fmt::join(config.prompt_words, " ")));
  if (terminal) return chat.run();
  const std::string question = LineReader().read_all();
  if (question.empty()) {
    return report_failure(absl::InvalidArgumentError("run: no PROMPT, and nothing on standard input"));
  }
  return chat.answer_once(question);
}

}  // namespace omnibus
