// ApiCore: what all doors (OpenAI's API, Ollama's, ...) share: one engine, the model's chat template and
// names, and the threads that read requests. Each door adds its routes to one table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/server/http/route_table.h"
#include "omnibus/text/template/chat_template.h"
#include "omnibus/text/template/dialect.h"

namespace omnibus {

// What answers call the reasoning: vLLM says "reasoning", llama.cpp and DeepSeek "reasoning_content".
enum class ReasoningField { kBoth, kReasoningContent, kReasoning };

struct ApiConfig {
  std::vector<std::string> model_names;  // >= 1; the first is the model's own in answers of /v1/models
  bool any_model = false;                // any "model" in a request means the one that is served
  bool strict_fields = false;            // an unknown field is 400
  bool trust_request_chat_template = false;
  std::string reasoning_parser = "auto";   // select_dialect's choice for templates in requests
  std::shared_ptr<const Dialect> dialect;  // of the model; null: answers are not split
  ReasoningField reasoning_field = ReasoningField::kBoth;
  bool prefill_assistant = false;  // an assistant message at the end is gone on with
  int32_t max_logprobs = 20;       // -1: as many as there are
  SamplingDefaults defaults;       // of the model, for requests that leave a field out
  int32_t text_threads = 1;        // parse, template, tokenise
  std::optional<uint64_t> seed;    // seeds requests that bring none; absent: the system does
  std::string version;
  std::string fingerprint;         // system_fingerprint of answers
  int32_t default_max_tokens = 0;  // of requests that set no limit; 0: the API's own default
  Json default_template_kwargs;  // object or null: variables of the chat template that a request may override
  bool slots = true;             // GET /slots answers
  std::string model_file;        // name of the file, without its folder
  // For /v1/models; 0 or empty: left out.
  int64_t parameters = 0, file_bytes = 0;
};

// How a door words an error; `path` is the request's.
using ErrorRenderer = HttpResponse (*)(const Status& error, std::string_view path);

struct ApiContext;
using ContextPtr = std::shared_ptr<const ApiContext>;

// Thread-safe. Everything about a request (parse, validate, template, tokenise) runs on its text pool,
// before the first byte of the answer. Handlers keep what they need of this object; the last one that exists,
// of all that with_config() made, is to go after the listeners: it waits for the pool.
class ApiCore {
 public:
  // `engine` and `metrics` outlive it. `chat_template` may be null: then chat is refused by name.
  static std::unique_ptr<ApiCore> create(ApiConfig config, AsyncEngine* engine,
                                         std::shared_ptr<const ChatTemplate> chat_template,
                                         MetricsRegistry* metrics);
  // The same engine, template and text pool under other settings; requests under the old ones go on.
  virtual std::unique_ptr<ApiCore> with_config(ApiConfig config) const = 0;
  virtual ~ApiCore() = default;

  using Job = std::function<void(const ContextPtr&, HttpRequest, const ReplyPtr&)>;
  // A handler that runs `job` on the text pool; 429 when too many requests wait to be read.
  virtual RouteHandler pooled(Job job, ErrorRenderer render) = 0;
  virtual const ContextPtr& context() const = 0;
};

}  // namespace omnibus
