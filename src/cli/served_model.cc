#include "omnibus/cli/served_model.h"

#include <fmt/format.h>

#include "omnibus/base/common/small_file.h"
#include "omnibus/base/config/option_set.h"
#include "omnibus/compute/core/compute_pool.h"
#include "omnibus/compute/worker/worker.h"
#include "omnibus/control/executor/executor.h"
#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"
#include "omnibus/store/model_files/tokenizer_spec.h"
#include "omnibus/store/model_store/model_store.h"

#include "sampling_defaults.h"
#include "text_layout.h"

namespace omnibus {
namespace {

constexpr double kStepTarget = 0.2;  // seconds

Numerics numerics_of(NumericsOption option) {
  return option == NumericsOption::kF32 ? Numerics::kF32 : Numerics::kFast;
}

CpuIsa isa_of(CpuIsaOption option) {
  switch (option) {
    case CpuIsaOption::kGeneric:
      return CpuIsa::kGeneric;
    case CpuIsaOption::kAvx2:
      return CpuIsa::kAvx2;
    case CpuIsaOption::kAvx512:
      return CpuIsa::kAvx512;
    default:
      return CpuIsa::kAuto;
  }
}

StatusOr<std::string> read_template_file(const std::string& path) {
  auto text = read_small_file(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      fmt::format("--chat-template: cannot read '{}': {}", path, status_message(text.status())));
}

WorkerConfig worker_config(std::shared_ptr<const GgufFile> file, const EngineOptions& options,
                           const EngineConfig& engine, std::function<void(int64_t, int64_t)> progress) {
  WorkerConfig config;
  config.model = std::move(file);
  config.numerics = numerics_of(options.numerics);
  config.cpu_isa = isa_of(options.cpu_isa);
  config.threads = options.threads;
  config.max_model_len = engine.max_model_len;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = engine.max_num_batched_tokens;
  config.kv_cache_bytes = options.kv_cache_memory_mib << 20;
  config.load_progress = std::move(progress);
  return config;
}

}  // namespace

EngineConfig engine_config_of(const EngineOptions& options, int32_t max_model_len) {
  EngineConfig config;
  config.max_model_len = max_model_len;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.batched_tokens();
  config.numerics = numerics_of(options.numerics);
  if (options.scheduling_policy == SchedulingPolicyOption::kPriority)
    config.policy = SchedulingPolicy::kPriority;
  config.prefix_caching = options.enable_prefix_caching;
  // With a core or two the worker has no time to give to a thread beside it.
  config.async_scheduling = options.async_scheduling.value_or(available_cores() > 2);
  // Who sets the budget of a step decides on its length, too.
  if (!options.max_num_batched_tokens) config.step_target_s = kStepTarget;
  config.step_timeout_s = options.step_timeout_s;
  return config;
}

StatusOr<std::shared_ptr<const ChatTemplate>> load_chat_template(const std::string& file,
                                                                 const std::string& of_model) {
  std::string source = of_model.empty() ? kChatMlTemplate : of_model;
  if (!file.empty()) {
    OMNIBUS_ASSIGN_OR_RETURN(source, read_template_file(file));
  }
  auto compiled = ChatTemplate::compile(source);
  if (compiled.ok()) return compiled;
  return absl::InvalidArgumentError(fmt::format("{}: {}", file.empty() ? "chat template of the model" : file,
                                                status_message(compiled.status())));
}

StatusOr<std::shared_ptr<const Dialect>> dialect_of(const std::string& reasoning_parser,
                                                    const ServedModel& model) {
  const std::string source = model.chat_template ? model.chat_template->source() : std::string();
  auto dialect = select_dialect(reasoning_parser, source, *model.tokenizer);
  if (dialect.ok()) return dialect;
  return absl::InvalidArgumentError("--reasoning-parser: " + status_message(dialect.status()));
}

StatusOr<ServedModel> open_model(const std::string& name, const EngineOptions& options,
                                 const std::string& chat_template_file,
                                 std::function<void(int64_t done, int64_t total)> progress) {
  OMNIBUS_ASSIGN_OR_RETURN(const std::string home, ModelStore::default_home(process_environment()));
  OMNIBUS_ASSIGN_OR_RETURN(const ResolvedModel resolved, ModelStore(home).resolve(name));
  OMNIBUS_ASSIGN_OR_RETURN(std::shared_ptr<const GgufFile> file, GgufFile::open(resolved.path));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(*file));
  OMNIBUS_ASSIGN_OR_RETURN(TokenizerSpec spec, read_tokenizer_spec(*file));

  ServedModel model;
  model.name = resolved.name;
  model.path = resolved.path;
  model.digest = resolved.digest;
  model.description =
      fmt::format("{}, {} parameters, {}, {}", config.architecture, short_count(config.parameters),
                  config.quantization, mebibytes(config.file_bytes));
  model.parameters = config.parameters;
  model.file_bytes = config.file_bytes;
  model.defaults = read_sampling_defaults(*file);
  OMNIBUS_ASSIGN_OR_RETURN(model.chat_template, load_chat_template(chat_template_file, spec.chat_template));
  OMNIBUS_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::create(std::move(spec)));
  model.engine = engine_config_of(options, options.max_model_len.value_or(config.context_length));
  OMNIBUS_ASSIGN_OR_RETURN(
      model.worker, make_worker(worker_config(std::move(file), options, model.engine, std::move(progress))));
  return model;
}

StatusOr<std::unique_ptr<AsyncEngine>> start_engine(ServedModel& model, MetricsRegistry* metrics,
                                                    const Clock* clock) {
  model.engine.model_name = model.name;
  auto executor = model.engine.async_scheduling ? make_threaded_executor(std::move(model.worker))
                                                : make_uniproc_executor(std::move(model.worker));
  return AsyncEngine::start(model.engine, std::move(executor), model.tokenizer, metrics, clock);
}

}  // namespace omnibus
