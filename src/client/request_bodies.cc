#include <nlohmann/json.hpp>

#include "omnibus/client/load_generator.h"

namespace omnibus::client {

std::vector<std::string> request_bodies(const BenchServeConfig& config, const std::string& model,
                                        const std::vector<PlannedRequest>& plan,
                                        const std::vector<std::string>& prompts) {
  using Json = nlohmann::ordered_json;
  const bool chat = config.backend == BenchBackend::kChat;
  Json extra = Json::object();
  if (!config.extra_body.empty()) extra = Json::parse(config.extra_body, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> bodies;
  bodies.reserve(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    Json body;
    body["model"] = model;
    if (chat) {
      body["messages"] = Json::array({{{"role", "user"}, {"content", prompts[i]}}});
      body["max_completion_tokens"] = plan[i].output_len;
    } else {
      body["prompt"] = prompts[i];
      body["max_tokens"] = plan[i].output_len;
    }
    body["stream"] = config.stream;
    if (config.stream) body["stream_options"] = {{"include_usage", true}};
    if (config.temperature) body["temperature"] = *config.temperature;
    if (config.ignore_eos) body["ignore_eos"] = true;
    body.update(extra);
    bodies.push_back(body.dump());
  }
  return bodies;
}

}  // namespace omnibus::client
