// ServedModel: a model with everything that serving or talking to it needs, whatever its worker is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/base/config/commands.h"
#include "omnibus/contract/step/worker_base.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/text/template/chat_template.h"
#include "omnibus/text/template/dialect.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

struct ServedModel {
  std::string name;         // of the model itself; the API may call it otherwise
  std::string description;  // "llama, 134.5 M parameters, Q4_1, 92 MiB"
  int64_t parameters = 0, file_bytes = 0;
  SamplingDefaults defaults;  // the model's own
  std::string path, digest;   // of its file; "" when it has none, or (digest) when the store does not know it
  EngineConfig engine;        // model_name is filled in by start_engine
  std::unique_ptr<WorkerBase> worker;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: chat is refused
};

// The template of `file` (--chat-template), else the model's own, else ChatML. Errors name the file.
StatusOr<std::shared_ptr<const ChatTemplate>> load_chat_template(const std::string& file,
                                                                 const std::string& of_model);

// The dialect of the model's answers (select_dialect). Errors name --reasoning-parser.
StatusOr<std::shared_ptr<const Dialect>> dialect_of(const std::string& reasoning_parser,
                                                    const ServedModel& model);

// Opens the model that `name` means (path, store name, alias) and prepares its worker. Nothing is loaded yet;
// `progress` is called while start_engine loads. Errors are for the person at the keyboard.
StatusOr<ServedModel> open_model(const std::string& name, const EngineOptions& options,
                                 const std::string& chat_template_file,
                                 std::function<void(int64_t done, int64_t total)> progress);

// What an engine is told by these options; the model's name and the limits of serving are for others to fill
// in.
EngineConfig engine_config_of(const EngineOptions& options, int32_t max_model_len);

// Moves worker and tokenizer into an engine. `model`'s other fields stay.
StatusOr<std::unique_ptr<AsyncEngine>> start_engine(ServedModel& model, MetricsRegistry* metrics,
                                                    const Clock* clock);

}  // namespace omnibus
