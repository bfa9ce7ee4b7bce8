#include "generation_fields.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "api/field_checks.h"
#include "api/number_fields.h"

namespace omnibus {
namespace {

using F = GenerationFields;
using T = FieldType;
constexpr unsigned kChat = kOnChat, kCompl = kOnCompletions, kBoth = kOnChat | kOnCompletions;

// vLLM's: below it, logits divided by the temperature lose their meaning in float.
constexpr float kLowestTemperature = 0.01F;

void take_stop(F& f, Json& v) {
  if (v.is_string()) {
    f.sampling.stop = {v.get<std::string>()};
  } else {
    f.sampling.stop = v.get<std::vector<std::string>>();
  }
}

void take_bias(F& f, Json& v) {
  for (const auto& [key, value] : v.items()) {
    TokenId id = 0;
    std::from_chars(key.data(), key.data() + key.size(), id);
    f.sampling.logit_bias.emplace_back(id, value.get<float>());
  }
}

void take_stream_options(F& f, Json& v) {
  const auto flag = [&](const char* name) {
    const auto it = v.find(name);
    return it != v.end() && it->is_boolean() && it->get<bool>();
  };
  f.include_usage = flag("include_usage");
  f.continuous_usage = flag("continuous_usage_stats");
}

std::vector<TokenId> to_ids(const Json& v) {
  std::vector<TokenId> ids;
  for (const Json& item : v) ids.push_back(to_int32(item));
  return ids;
}

Field<F> used(FieldRule rule, void (*take)(F&, Json&)) { return {rule, take}; }

Field<F> ignored(std::string_view name, unsigned routes) {
  FieldRule rule{.name = name, .routes = routes};
  rule.verdict = Verdict::kIgnored;
  return {rule, nullptr};
}

Field<F> unsupported(std::string_view name, unsigned routes, std::string_view neutral) {
  FieldRule rule{.name = name, .routes = routes};
  rule.verdict = Verdict::kUnsupported;
  rule.neutral = neutral;
  return {rule, nullptr};
}

Field<F> flag(std::string_view name, unsigned routes, void (*take)(F&, Json&)) {
  return {{.name = name, .routes = routes, .type = T::kBool}, take};
}

using Table = std::vector<Field<F>>;

void add_inputs(Table& t) {
  t.push_back(used({.name = "model", .routes = kBoth, .type = T::kString, .min = 1, .max = 256},
                   [](F& f, Json& v) { f.model = v.get<std::string>(); }));
  t.push_back(used({.name = "messages", .routes = kChat, .type = T::kArray, .min = 1, .max = 16384},
                   [](F& f, Json& v) { f.messages = std::move(v); }));
  t.push_back(used({.name = "prompt", .routes = kCompl, .check = check_prompt},
                   [](F& f, Json& v) { f.prompt = std::move(v); }));
  t.push_back(flag("add_special_tokens", kBoth, [](F& f, Json& v) { f.add_special_tokens = v.get<bool>(); }));
  t.push_back(
      flag("add_generation_prompt", kChat, [](F& f, Json& v) { f.add_generation_prompt = v.get<bool>(); }));
  t.push_back(
      flag("continue_final_message", kChat, [](F& f, Json& v) { f.continue_final_message = v.get<bool>(); }));
  t.push_back(
      used({.name = "documents", .routes = kChat, .type = T::kArray, .max = 1024, .check = check_documents},
           [](F& f, Json& v) { f.documents = std::move(v); }));
  t.push_back(used({.name = "truncate_prompt_tokens",
                    .routes = kBoth,
                    .type = T::kInteger,
                    .min = -1,
                    .max = kInt32Max,
                    .check = check_not_zero},
                   [](F& f, Json& v) { f.truncate_prompt_tokens = integer_of(v); }));
  t.push_back(
      used({.name = "truncation_side", .routes = kBoth, .type = T::kString, .check = check_truncation_side},
           [](F& f, Json& v) {
             f.truncation_side = v == "right" ? TruncationSide::kRight : TruncationSide::kLeft;
           }));
  t.push_back(used({.name = "chat_template", .routes = kChat, .type = T::kString, .min = 1},
                   [](F& f, Json& v) { f.chat_template = v.get<std::string>(); }));
  t.push_back(used({.name = "chat_template_kwargs",
                    .routes = kChat,
                    .type = T::kObject,
                    .max = 64,
                    .check = check_template_kwargs},
                   [](F& f, Json& v) { f.chat_template_kwargs = std::move(v); }));
  t.push_back(
      used({.name = "reasoning_effort", .routes = kChat, .type = T::kString, .check = check_reasoning_effort},
           [](F& f, Json& v) { f.reasoning_effort = v.get<std::string>(); }));
  t.push_back(used({.name = "cache_salt",
                    .routes = kBoth,
                    .type = T::kString,
                    .min = 1,
                    .max = 128,
                    .check = check_cache_salt},
                   [](F& f, Json& v) { f.cache_salt = v.get<std::string>(); }));
}

void add_sampling(Table& t) {
  t.push_back(used({.name = "temperature", .routes = kBoth, .type = T::kNumber, .min = 0, .max = 2},
                   [](F& f, Json& v) {
                     const auto value = v.get<float>();
                     f.sampling.temperature = value > 0 ? std::max(value, kLowestTemperature) : 0.0F;
                   }));
  t.push_back(used({.name = "top_p", .routes = kBoth, .type = T::kNumber, .min = 0, .max = 1},
                   [](F& f, Json& v) { f.sampling.top_p = v.get<float>(); }));
  t.push_back(used({.name = "top_k", .routes = kBoth, .type = T::kInteger, .min = -1, .max = kInt32Max},
                   [](F& f, Json& v) { f.sampling.top_k = to_int32(v); }));
  t.push_back(used({.name = "min_p", .routes = kBoth, .type = T::kNumber, .min = 0, .max = 1},
                   [](F& f, Json& v) { f.sampling.min_p = v.get<float>(); }));
  t.push_back(used({.name = "repetition_penalty",
                    .routes = kBoth,
                    .type = T::kNumber,
                    .min = kPenaltyMin,
                    .max = kPenaltyMax},
                   [](F& f, Json& v) { f.repetition_penalty = v.get<float>(); }));
  t.push_back(used(
      {.name = "repeat_penalty", .routes = kBoth, .type = T::kNumber, .min = kPenaltyMin, .max = kPenaltyMax},
      [](F& f, Json& v) { f.repeat_penalty = v.get<float>(); }));
  t.push_back(used({.name = "frequency_penalty", .routes = kBoth, .type = T::kNumber, .min = -2, .max = 2},
                   [](F& f, Json& v) { f.sampling.frequency_penalty = v.get<float>(); }));
  t.push_back(used({.name = "presence_penalty", .routes = kBoth, .type = T::kNumber, .min = -2, .max = 2},
                   [](F& f, Json& v) { f.sampling.presence_penalty = v.get<float>(); }));
  t.push_back(used(
      {.name = "logit_bias", .routes = kBoth, .type = T::kObject, .max = 1024, .check = check_logit_bias},
      take_bias));
  t.push_back(used({.name = "allowed_token_ids",
                    .routes = kBoth,
                    .type = T::kArray,
                    .min = 1,
                    .max = 1048576,
                    .check = check_token_ids},
                   [](F& f, Json& v) { f.sampling.allowed_token_ids = to_ids(v); }));
  t.push_back(
      used({.name = "bad_words", .routes = kBoth, .type = T::kArray, .max = 1024, .check = check_bad_words},
           [](F& f, Json& v) { f.bad_words = v.get<std::vector<std::string>>(); }));
  t.push_back(used({.name = "seed", .routes = kBoth, .type = T::kInteger},
                   [](F& f, Json& v) { f.seed = integer_of(v); }));
  t.push_back(used({.name = "n", .routes = kBoth, .type = T::kInteger, .min = 1, .max = 128},
                   [](F& f, Json& v) { f.n = to_int32(v); }));
  t.push_back(used({.name = "best_of", .routes = kCompl, .type = T::kInteger, .min = 0, .max = 20},
                   [](F& f, Json& v) { f.best_of = integer_of(v); }));
}

void add_stopping(Table& t) {
  // -1 means "no limit" to many clients; 0 is for completions with echo.
  t.push_back(used({.name = "max_tokens",
                    .routes = kChat,
                    .type = T::kInteger,
                    .min = -1,
                    .max = kInt32Max,
                    .check = check_not_zero},
                   [](F& f, Json& v) { f.max_tokens = integer_of(v); }));
  t.push_back(used({.name = "max_tokens", .routes = kCompl, .type = T::kInteger, .min = -1, .max = kInt32Max},
                   [](F& f, Json& v) { f.max_tokens = integer_of(v); }));
  t.push_back(used(
      {.name = "max_completion_tokens", .routes = kChat, .type = T::kInteger, .min = 1, .max = kInt32Max},
      [](F& f, Json& v) { f.max_completion_tokens = integer_of(v); }));
  t.push_back(used({.name = "min_tokens", .routes = kBoth, .type = T::kInteger, .min = 0, .max = kInt32Max},
                   [](F& f, Json& v) { f.sampling.min_tokens = to_int32(v); }));
  t.push_back(used({.name = "stop", .routes = kBoth, .check = check_stop}, take_stop));
  t.push_back(used(
      {.name = "stop_token_ids", .routes = kBoth, .type = T::kArray, .max = 1024, .check = check_token_ids},
      [](F& f, Json& v) { f.sampling.stop_token_ids = to_ids(v); }));
  t.push_back(flag("ignore_eos", kBoth, [](F& f, Json& v) { f.sampling.ignore_eos = v.get<bool>(); }));
  t.push_back(flag("include_stop_str_in_output", kBoth,
                   [](F& f, Json& v) { f.sampling.include_stop_str_in_output = v.get<bool>(); }));
  t.push_back(
      flag("stop_in_reasoning", kChat, [](F& f, Json& v) { f.sampling.stop_in_reasoning = v.get<bool>(); }));
  t.push_back(flag("skip_special_tokens", kBoth,
                   [](F& f, Json& v) { f.sampling.skip_special_tokens = v.get<bool>(); }));
}

// What is not 0 needs --scheduling-policy priority (generation_params.cc).
void add_order(Table& t) {
  t.push_back(
      used({.name = "priority", .routes = kBoth, .type = T::kInteger, .min = kInt32Min, .max = kInt32Max},
           [](F& f, Json& v) { f.priority = to_int32(v); }));
}

void add_output(Table& t) {
  t.push_back(flag("stream", kBoth, [](F& f, Json& v) { f.stream = v.get<bool>(); }));
  t.push_back(used({.name = "stream_options",
                    .routes = kBoth,
                    .type = T::kObject,
                    .max = 16,
                    .keys = "include_usage include_obfuscation continuous_usage_stats",
                    .check = check_stream_options},
                   take_stream_options));
  t.push_back(flag("include_timings", kBoth, [](F& f, Json& v) { f.include_timings = v.get<bool>(); }));
  t.push_back(flag("logprobs", kChat, [](F& f, Json& v) { f.logprobs = v.get<bool>(); }));
  t.push_back(used({.name = "logprobs", .routes = kCompl, .type = T::kInteger, .min = -1, .max = kInt32Max},
                   [](F& f, Json& v) { f.logprob_count = to_int32(v); }));
  t.push_back(
      used({.name = "top_logprobs", .routes = kChat, .type = T::kInteger, .min = -1, .max = kInt32Max},
           [](F& f, Json& v) { f.top_logprobs = to_int32(v); }));
  t.push_back(
      used({.name = "prompt_logprobs", .routes = kBoth, .type = T::kInteger, .min = -1, .max = kInt32Max},
           [](F& f, Json& v) { f.prompt_logprobs = to_int32(v); }));
  t.push_back(used(
      {.name = "logprob_token_ids", .routes = kBoth, .type = T::kArray, .max = 128, .check = check_token_ids},
      [](F& f, Json& v) { f.sampling.logprob_token_ids = to_ids(v); }));
  t.push_back(flag("echo", kBoth, [](F& f, Json& v) { f.echo = v.get<bool>(); }));
  t.push_back(flag("include_reasoning", kChat, [](F& f, Json& v) { f.include_reasoning = v.get<bool>(); }));
  t.push_back(flag("return_token_ids", kBoth, [](F& f, Json& v) { f.return_token_ids = v.get<bool>(); }));
  t.push_back(flag("return_tokens_as_token_ids", kBoth,
                   [](F& f, Json& v) { f.tokens_as_token_ids = v.get<bool>(); }));
}

// Known to clients of OpenAI, vLLM or llama.cpp, and without any effect on the answer.
void add_ignored(Table& t) {
  for (const char* name :
       {"user", "request_id", "session_id", "spaces_between_special_tokens", "cache_prompt", "id_slot",
        "verbose", "keep_alive", "options", "xtc_threshold", "dry_base", "dry_allowed_length",
        "dry_penalty_last_n", "dry_sequence_breakers", "mirostat_tau", "mirostat_eta", "dynatemp_exponent"}) {
    t.push_back(ignored(name, kBoth));
  }
  for (const char* name :
       {"verbosity", "service_tier", "store", "metadata", "safety_identifier", "prompt_cache_key",
        "prompt_cache_retention", "prompt_cache_options", "parallel_tool_calls"}) {
    t.push_back(ignored(name, kChat));
  }
}

// Known, not built: refused by name unless the value asks for nothing.
void add_unsupported(Table& t) {
  t.push_back(unsupported("tools", kChat, "[]"));
  t.push_back(unsupported("tool_choice", kChat, R"("none")"));
  t.push_back(unsupported("functions", kChat, "[]"));
  t.push_back(unsupported("function_call", kChat, R"("none")"));
  t.push_back(unsupported("modalities", kChat, R"(["text"])"));
  t.push_back(unsupported("thinking_token_budget", kChat, "-1"));
  t.push_back(unsupported("reasoning_budget_tokens", kChat, "-1"));
  t.push_back(unsupported("suffix", kCompl, R"("")"));
  t.push_back(unsupported("response_format", kBoth, R"({"type":"text"})"));
  for (const char* name : {"audio", "prediction", "web_search_options", "moderation"}) {
    t.push_back(unsupported(name, kChat, ""));
  }
  for (const char* name :
       {"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
        "guided_whitespace_pattern", "grammar", "json_schema", "samplers", "repetition_detection"}) {
    t.push_back(unsupported(name, kBoth, ""));
  }
  for (const char* name : {"mm_processor_kwargs", "media_io_kwargs", "kv_transfer_params", "vllm_xargs"}) {
    t.push_back(unsupported(name, kBoth, "{}"));
  }
  for (const char* name : {"use_beam_search", "return_prompt_text", "return_token_offsets", "return_progress",
                           "timings_per_token"}) {
    t.push_back(unsupported(name, kBoth, "false"));
  }
  for (const char* name : {"length_penalty", "typical_p", "stream_interval"}) {
    t.push_back(unsupported(name, kBoth, "1"));
  }
  for (const char* name :
       {"xtc_probability", "dry_multiplier", "mirostat", "dynatemp_range", "n_probs", "min_keep"}) {
    t.push_back(unsupported(name, kBoth, "0"));
  }
  t.push_back(unsupported("top_n_sigma", kBoth, "-1"));
}

Table make_table() {
  Table table;
  add_inputs(table);
  add_sampling(table);
  add_stopping(table);
  add_order(table);
  add_output(table);
  add_ignored(table);
  add_unsupported(table);
  return table;
}

}  // namespace

std::span<const Field<GenerationFields>> generation_field_table() {
  static const Table table = make_table();
  return table;
}

}  // namespace omnibus
