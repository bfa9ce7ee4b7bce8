// Bodies of POST /v1/chat/completions and /v1/completions: refused with an error object that is whole, or
// taken with every value within its bounds. Input: one byte for route and strictness, then the body.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "omnibus/server/openai/openai_api.h"

#include "api/messages.h"
#include "api/request_body.h"
#include "openai/generation_fields.h"

namespace {

using omnibus::GenerationFields;
using omnibus::Json;

void require(bool held) {
  if (!held) __builtin_trap();
}

void check_error(const omnibus::Status& status) {
  const omnibus::HttpResponse response = omnibus::render_openai_error(status, "/v1/chat/completions");
  require(response.status >= 400 && response.status < 500);
  const auto body = omnibus::parse_json(response.body);
  require(body.ok() && body->contains("error"));
  const Json& error = (*body)["error"];
  require(error.size() == 4 && error["message"].is_string() && error["type"].is_string());
  require(!error["message"].get_ref<const std::string&>().empty() && response.body.size() < 4096);
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

void check_fields(const GenerationFields& f) {
  const omnibus::SamplingParams& s = f.sampling;
  require(within(s.temperature, 0, 2) && within(s.top_p, 0, 1) && within(s.min_p, 0, 1) && s.top_k >= -1);
  require(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty));
  require(within(s.frequency_penalty, -2, 2) && within(s.presence_penalty, -2, 2));
  require(f.n >= 1 && f.n <= 128 && s.min_tokens >= 0);
  require(s.stop.size() <= 64 && s.logit_bias.size() <= 1024);
  for (const std::string& text : s.stop) require(!text.empty() && text.size() <= 256);
  for (const auto& [id, bias] : s.logit_bias) require(id >= 0 && within(bias, -100, 100));
  for (const auto id : s.stop_token_ids) require(id >= 0);
  for (const auto id : s.allowed_token_ids) require(id >= 0);
  require(!f.max_tokens || *f.max_tokens >= -1);
  require(!f.top_logprobs || within(*f.top_logprobs, 0, 20));
  require(!f.logprob_count || within(*f.logprob_count, 0, 20));
  require(f.cache_salt.size() <= 128);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const bool strict = (data[0] & 2) != 0;
  const unsigned route = (data[0] & 1) != 0 ? omnibus::kOnChat : omnibus::kOnCompletions;
  omnibus::HttpRequest request;
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto parsed = omnibus::parse_body(request, omnibus::generation_field_table(), {route, strict});
  if (!parsed.ok()) {
    check_error(parsed.status());
    return 0;
  }
  check_fields(parsed->fields);
  const std::string header = omnibus::ignored_fields_header(parsed->ignored);
  require(header.size() <= 1100 && header.find_first_of("\r\n") == std::string::npos);
  Json& messages = parsed->fields.messages;
  if (messages.is_null()) return 0;
  const omnibus::Status status = omnibus::normalize_messages(messages, strict, parsed->ignored);
  if (!status.ok()) {
    check_error(status);
    return 0;
  }
  require(messages.is_array() && !messages.empty());
  for (const Json& message : messages) require(message.is_object() && message["role"].is_string());
  return 0;
}
