// ApiContext: what the handlers of all doors share. Immutable after creation; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "omnibus/control/engine/async_engine.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/text/template/chat_template.h"

namespace omnibus {

struct ApiContext {
  ApiConfig config;
  AsyncEngine* engine = nullptr;
  std::shared_ptr<const ChatTemplate> chat_template;
  MetricsRegistry* metrics = nullptr;
  int64_t created = 0;  // start-up, for /v1/models
  // Those that drew their seed from --seed; a reload goes on counting.
  std::shared_ptr<std::atomic<uint64_t>> requests = std::make_shared<std::atomic<uint64_t>>(0);

  const Tokenizer& tokenizer() const { return engine->tokenizer(); }
  // Whether answers of the served model may come with reasoning.
  bool supports_thinking() const { return config.dialect != nullptr && chat_template != nullptr; }
  int32_t max_model_len() const { return engine->config().max_model_len; }
  // 404 model_not_found unless the model is served here; an empty name means the served one.
  Status check_model(const std::string& model) const;
  // 404 model_not_found, naming those that are served.
  Status model_not_found(const std::string& model) const;
  // What an answer calls the model: the name that was asked for, else the first served.
  std::string answer_model(const std::string& asked) const;
};

}  // namespace omnibus
