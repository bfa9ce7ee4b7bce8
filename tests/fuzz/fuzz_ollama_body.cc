// Bodies of Ollama's API from strangers, to validated fields or an error. First byte: the route.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ollama/ollama_body.h"
#include "ollama/ollama_fields.h"

namespace {

using namespace omnibus;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// What the rest of the server takes for granted.
void check_fields(const OllamaFields& f) {
  const SamplingParams& s = f.options.sampling;
  require(std::isfinite(s.temperature) && s.temperature >= 0);
  require(s.top_p >= 0 && s.top_p <= 1 && s.min_p >= 0 && s.min_p <= 1 && s.top_k >= -1);
  require(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0);
  require(std::fabs(s.presence_penalty) <= 2 && std::fabs(s.frequency_penalty) <= 2);
  require(s.stop.size() <= 64);
  for (const std::string& stop : s.stop) require(!stop.empty() && stop.size() <= 256);
  require(!f.options.num_predict || (*f.options.num_predict >= -2 && *f.options.num_predict <= INT32_MAX));
  require(!f.options.num_ctx || (*f.options.num_ctx >= 1 && *f.options.num_ctx <= INT32_MAX));
  require(f.top_logprobs >= 0 && f.top_logprobs <= 20 && (f.top_logprobs == 0 || f.logprobs));
  require(!f.keep_alive || *f.keep_alive >= -1);
  require(f.messages.is_null() || f.messages.is_array());
  for (const TokenId id : f.context) require(id >= 0);
  require(!f.raw || (f.system.empty() && f.context.empty() && f.chat_template.empty()));
}

void parse_generation(const std::string& body, OllamaRoute route) {
  for (const bool strict : {false, true}) {
    const auto parsed = parse_ollama_body(body, route, strict);
    if (parsed.ok()) {
      check_fields(parsed->fields);
    } else {
      require(error_detail(parsed.status()).http == 400 && !status_message(parsed.status()).empty());
    }
  }
}

void parse_model(const std::string& body, ModelRoute route) {
  const auto parsed = parse_model_body(body, route, /*strict=*/false);
  if (!parsed.ok()) return require(error_detail(parsed.status()).http == 400);
  const bool copy = route == ModelRoute::kCopy;
  require(copy ? !parsed->source.empty() && !parsed->destination.empty() : !parsed->model.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      parse_generation(body, OllamaRoute::kGenerate);
      break;
    case 1:
      parse_generation(body, OllamaRoute::kChat);
      break;
    case 2:
      parse_model(body, ModelRoute::kShow);
      break;
    case 3:
      parse_model(body, ModelRoute::kDelete);
      break;
    default:
      parse_model(body, ModelRoute::kCopy);
  }
  return 0;
}
