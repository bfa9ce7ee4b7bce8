// OpenAI's API (and vLLM's extensions of it) in front of one AsyncEngine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/metrics.h"
#include "omnibus/base/common/status.h"
#include "omnibus/control/engine/async_engine.h"
#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/route_table.h"
#include "omnibus/text/template/chat_template.h"

namespace omnibus {

struct OpenAiConfig {
  std::vector<std::string> model_names;  // >= 1; the first is the model's own in answers of /v1/models
  bool any_model = false;                // any "model" in a request means the one that is served
  bool strict_fields = false;            // an unknown field is 400
  bool trust_request_chat_template = false;
  int32_t max_logprobs = 20;
  int32_t text_threads = 1;      // parse, template, tokenise
  std::optional<uint64_t> seed;  // seeds requests that bring none; absent: the system does
  std::string version;
  std::string fingerprint;  // system_fingerprint of answers
  // For /v1/models; 0 or empty: left out.
  int64_t parameters = 0, file_bytes = 0;
};

// The error object of OpenAI's API (docs/design.md, API), with Retry-After where the status carries it.
HttpResponse render_openai_error(const Status& error, std::string_view path);

// Thread-safe. Everything about a request (parse, validate, template, tokenise) runs on its own text pool,
// before the first byte of the answer.
class OpenAiApi {
 public:
  // `engine` and `metrics` outlive it. `chat_template` may be null: then chat is refused by name.
  static std::unique_ptr<OpenAiApi> create(OpenAiConfig config, AsyncEngine* engine,
                                           std::shared_ptr<const ChatTemplate> chat_template,
                                           MetricsRegistry* metrics);
  // Finishes what is in the text pool.
  virtual ~OpenAiApi() = default;

  // The handlers refer to this object: it outlives the listener.
  virtual void add_routes(RouteTable& routes) = 0;
};

}  // namespace omnibus
