#include "omnibus/store/model_files/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"
#include "omnibus/store/model_files/gguf.h"

#include "quoted.h"
#include "tensor_rules.h"

namespace omnibus {
namespace {

using model_files::quoted;

struct Architecture {
  const char* name;
  RopeStyle style;
};
constexpr std::array<Architecture, 3> kArchitectures = {
    {{"llama", RopeStyle::kNorm}, {"qwen2", RopeStyle::kNeox}, {"qwen3", RopeStyle::kNeox}}};

// Widest head that the attention kernels hold in registers and on the stack; ops check it again.
constexpr int32_t kMaxHeadDim = 256;

// Keys of features that are not built, with the value at which the feature is off.
struct OffKey {
  const char* key;
  double off;
};
constexpr std::array<OffKey, 19> kOffKeys = {{
    {"expert_count", 0},
    {"expert_used_count", 0},
    {"leading_dense_block_count", 0},
    {"nextn_predict_layers", 0},
    {"full_attention_interval", 0},
    {"pooling_type", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.q_lora_rank", 0},
    {"attention.kv_lora_rank", 0},
    {"attention.temperature_scale", 0},
    {"attention.output_scale", 1},
    {"rope.scaling.attn_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0},
}};

// Keys that are read below, or that say nothing about the maths of these architectures.
constexpr std::array<const char*, 26> kKnownKeys = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "tensor_data_layout",
    "use_parallel_residual",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "attention.causal",
    "attention.scale",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "attention.key_length_swa",
    "attention.value_length_swa",
};

// Reads the keys of one file; every error names the key.
class ConfigReader {
 public:
  explicit ConfigReader(const GgufFile& file) : file_(file) {}

  StatusOr<ModelConfig> read() {
    OMNIBUS_RETURN_IF_ERROR(read_architecture());
    OMNIBUS_RETURN_IF_ERROR(read_sizes());
    OMNIBUS_RETURN_IF_ERROR(read_heads());
    OMNIBUS_RETURN_IF_ERROR(read_rope());
    OMNIBUS_RETURN_IF_ERROR(check_features());
    OMNIBUS_RETURN_IF_ERROR(model_files::apply_tensor_rules(file_, &config_));
    model_files::summarise_tensors(file_, &config_);
    config_.file_bytes = static_cast<int64_t>(file_.file_bytes());
    return config_;
  }

 private:
  std::string key(std::string_view suffix) const {
    return fmt::format("{}.{}", config_.architecture, suffix);
  }
  Status bad(std::string_view full_key, std::string_view message) const {
    return absl::InvalidArgumentError(
        fmt::format("{}: key {}: {}", file_.label(), quoted(full_key), message));
  }
  Status unbuilt(std::string_view full_key, std::string_view message) const {
    return absl::UnimplementedError(fmt::format("{}: key {}: {}", file_.label(), quoted(full_key), message));
  }

  Status read_architecture();
  Status read_sizes();
  Status read_heads();
  Status read_rope();
  Status read_scaling();
  Status check_features() const;
  Status check_switches() const;
  void warn_of_unknown_keys() const;

  // An integer of [1, most]; `fallback` < 0 means that the key is required. Arrays (per layer) are accepted
  // where every layer has the same value.
  StatusOr<int32_t> size(std::string_view suffix, int64_t most, int64_t fallback = -1) const;
  StatusOr<int64_t> int_or_uniform(const std::string& full_key) const;
  StatusOr<double> real(std::string_view suffix, double fallback) const;
  StatusOr<int32_t> vocabulary() const;
  std::string model_name() const;

  const GgufFile& file_;
  ModelConfig config_;
};

StatusOr<int64_t> ConfigReader::int_or_uniform(const std::string& full_key) const {
  const auto found = file_.metadata().find(full_key);
  if (found != file_.metadata().end()) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&found->second)) {
      if (list->empty()) return bad(full_key, "the array is empty");
      const bool uniform =
          std::all_of(list->begin(), list->end(), [&](int64_t v) { return v == (*list)[0]; });
      if (!uniform) return unbuilt(full_key, "sizes that differ from layer to layer are not supported");
      return (*list)[0];
    }
  }
  return file_.get_int(full_key);
}

StatusOr<int32_t> ConfigReader::size(std::string_view suffix, int64_t most, int64_t fallback) const {
  const std::string full_key = key(suffix);
  if (fallback >= 0 && !file_.has(full_key)) return static_cast<int32_t>(fallback);
  OMNIBUS_ASSIGN_OR_RETURN(const int64_t value, int_or_uniform(full_key));
  if (value < 1 || value > most) return bad(full_key, fmt::format("{} is not in 1..{}", value, most));
  return static_cast<int32_t>(value);
}

StatusOr<double> ConfigReader::real(std::string_view suffix, double fallback) const {
  const std::string full_key = key(suffix);
  if (!file_.has(full_key)) return fallback;
  OMNIBUS_ASSIGN_OR_RETURN(const double value, file_.get_float(full_key));
  if (!std::isfinite(value)) return bad(full_key, "the number is not finite");
  return value;
}

Status ConfigReader::read_architecture() {
  if (file_.has("general.type")) {
    OMNIBUS_ASSIGN_OR_RETURN(const std::string type, file_.get_string("general.type"));
    if (type != "model") {
      return unbuilt("general.type", fmt::format("the file holds {}, not a model", quoted(type)));
    }
  }
  OMNIBUS_ASSIGN_OR_RETURN(config_.architecture, file_.get_string("general.architecture"));
  const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                   [&](const Architecture& a) { return config_.architecture == a.name; });
  if (found == kArchitectures.end()) {
    return unbuilt("general.architecture",
                   fmt::format("architecture {} is not supported (llama, qwen2 and qwen3 are)",
                               quoted(config_.architecture)));
  }
  config_.rope.style = found->style;
  config_.name = model_name();
  return absl::OkStatus();
}

std::string ConfigReader::model_name() const {
  if (auto name = file_.get_string("general.name"); name.ok() && !name->empty()) return *name;
  std::string stem = file_.label().substr(file_.label().find_last_of('/') + 1);
  if (stem.ends_with(".gguf")) stem.resize(stem.size() - 5);
  return stem;
}

StatusOr<int32_t> ConfigReader::vocabulary() const {
  constexpr int64_t kMost = 1 << 24;
  int64_t tokens = -1;
  if (const auto found = file_.metadata().find("tokenizer.ggml.tokens"); found != file_.metadata().end()) {
    if (const auto* list = std::get_if<std::vector<std::string_view>>(&found->second)) {
      tokens = static_cast<int64_t>(list->size());
    }
  }
  if (tokens == 0 || tokens > kMost) {
    return bad("tokenizer.ggml.tokens", fmt::format("a vocabulary of {} tokens", tokens));
  }
  OMNIBUS_ASSIGN_OR_RETURN(const int32_t size, this->size("vocab_size", kMost, tokens));
  if (size < 0) return bad(key("vocab_size"), "missing, and the file has no vocabulary either");
  if (tokens >= 0 && tokens != size) {
    return bad(key("vocab_size"),
               fmt::format("{} does not agree with the {} tokens of the vocabulary", size, tokens));
  }
  return size;
}

Status ConfigReader::read_sizes() {
  constexpr int64_t kMostLayers = 512;
  constexpr int64_t kMostWidth = 1 << 24;
  OMNIBUS_ASSIGN_OR_RETURN(config_.vocab_size, vocabulary());
  OMNIBUS_ASSIGN_OR_RETURN(config_.context_length,
                           size("context_length", std::numeric_limits<int32_t>::max()));
  OMNIBUS_ASSIGN_OR_RETURN(config_.hidden_size, size("embedding_length", kMostWidth));
  OMNIBUS_ASSIGN_OR_RETURN(config_.num_layers, size("block_count", kMostLayers));
  OMNIBUS_ASSIGN_OR_RETURN(config_.intermediate_size, size("feed_forward_length", kMostWidth));
  if (!file_.has(key("attention.layer_norm_rms_epsilon"))) {
    return bad(key("attention.layer_norm_rms_epsilon"), "the key is missing");
  }
  OMNIBUS_ASSIGN_OR_RETURN(config_.rms_norm_eps, real("attention.layer_norm_rms_epsilon", 0));
  if (config_.rms_norm_eps < 0 || config_.rms_norm_eps >= 1) {
    return bad(key("attention.layer_norm_rms_epsilon"),
               fmt::format("{} is not in [0, 1)", config_.rms_norm_eps));
  }
  return absl::OkStatus();
}

Status ConfigReader::read_heads() {
  constexpr int64_t kMostHeads = 1 << 16;
  constexpr int64_t kMostHeadDim = 1 << 14;
  OMNIBUS_ASSIGN_OR_RETURN(config_.num_heads, size("attention.head_count", kMostHeads));
  OMNIBUS_ASSIGN_OR_RETURN(config_.num_kv_heads,
                           size("attention.head_count_kv", kMostHeads, config_.num_heads));
  if (config_.num_heads % config_.num_kv_heads != 0) {
    return bad(key("attention.head_count_kv"), fmt::format("{} query heads cannot share {} key/value heads",
                                                           config_.num_heads, config_.num_kv_heads));
  }
  const bool has_key_length = file_.has(key("attention.key_length"));
  if (!has_key_length && config_.hidden_size % config_.num_heads != 0) {
    return bad(key("attention.head_count"),
               fmt::format("{} heads do not divide the width {}, and {} is missing", config_.num_heads,
                           config_.hidden_size, key("attention.key_length")));
  }
  const int64_t derived = config_.hidden_size / config_.num_heads;
  OMNIBUS_ASSIGN_OR_RETURN(config_.head_dim, size("attention.key_length", kMostHeadDim, derived));
  OMNIBUS_ASSIGN_OR_RETURN(const int32_t value_dim, size("attention.value_length", kMostHeadDim, derived));
  if (value_dim != config_.head_dim) {
    return unbuilt(key("attention.value_length"),
                   fmt::format("value heads of {} beside key heads of {} are not supported", value_dim,
                               config_.head_dim));
  }
  const std::string head_dim_key = key(has_key_length ? "attention.key_length" : "attention.head_count");
  if (config_.head_dim < 2 || config_.head_dim % 2 != 0) {
    return bad(head_dim_key, fmt::format("heads of {} cannot be rotated (must be even)", config_.head_dim));
  }
  if (config_.head_dim > kMaxHeadDim) {
    return unbuilt(head_dim_key,
                   fmt::format("heads of {} are not supported (at most {})", config_.head_dim, kMaxHeadDim));
  }
  return absl::OkStatus();
}

Status ConfigReader::read_rope() {
  RopeConfig& rope = config_.rope;
  OMNIBUS_ASSIGN_OR_RETURN(rope.dims, size("rope.dimension_count", config_.head_dim, config_.head_dim));
  if (rope.dims % 2 != 0) return bad(key("rope.dimension_count"), fmt::format("{} is odd", rope.dims));
  OMNIBUS_ASSIGN_OR_RETURN(rope.freq_base, real("rope.freq_base", 10000.0));
  if (rope.freq_base <= 0) {
    return bad(key("rope.freq_base"), fmt::format("{} is not positive", rope.freq_base));
  }
  return read_scaling();
}

Status ConfigReader::read_scaling() {
  RopeConfig& rope = config_.rope;
  std::string type = "linear";  // what the format means when the key is absent: linear with factor 1
  const std::string type_key = key("rope.scaling.type");
  if (file_.has(type_key)) {
    OMNIBUS_ASSIGN_OR_RETURN(type, file_.get_string(type_key));
  }
  if (type == "yarn" || type == "longrope") {
    rope.scaling = type == "yarn" ? RopeScaling::kYarn : RopeScaling::kLongRope;
    return unbuilt(type_key, fmt::format("rope scaling {} is not supported", quoted(type)));
  }
  if (type != "none" && type != "linear")
    return bad(type_key, fmt::format("unknown scaling {}", quoted(type)));
  const char* factor_key =
      file_.has(key("rope.scaling.factor")) ? "rope.scaling.factor" : "rope.scale_linear";
  OMNIBUS_ASSIGN_OR_RETURN(double factor, real(factor_key, 1.0));
  if (factor < 0) return bad(key(factor_key), fmt::format("{} is negative", factor));
  if (factor == 0 || type == "none") factor = 1.0;  // converters write 0 for "no scaling"
  rope.factor = factor;
  rope.scaling = factor == 1.0 ? RopeScaling::kNone : RopeScaling::kLinear;
  return absl::OkStatus();
}

Status ConfigReader::check_features() const {
  for (const OffKey& entry : kOffKeys) {
    const std::string full_key = key(entry.key);
    if (!file_.has(full_key)) continue;
    OMNIBUS_ASSIGN_OR_RETURN(const double value, file_.get_float(full_key));
    // Scales of 0 stand for "absent" in converted files.
    if (value != entry.off && value != 0) {
      return unbuilt(full_key, fmt::format("the feature is not supported (value {})", value));
    }
  }
  if (file_.has(key("attention.scale"))) {
    OMNIBUS_ASSIGN_OR_RETURN(const double scale, real("attention.scale", 0));
    const double usual = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
    if (scale != 0 && std::abs(scale - usual) > 1e-6 * usual) {
      return unbuilt(key("attention.scale"),
                     fmt::format("a scale of {} instead of {} is not supported", scale, usual));
    }
  }
  if (file_.has(key("attention.sliding_window"))) {
    OMNIBUS_ASSIGN_OR_RETURN(const int64_t window, int_or_uniform(key("attention.sliding_window")));
    if (window > 0 && window < config_.context_length) {
      return unbuilt(key("attention.sliding_window"),
                     fmt::format("a window of {} within a context of {} is not supported", window,
                                 config_.context_length));
    }
  }
  OMNIBUS_RETURN_IF_ERROR(check_switches());
  warn_of_unknown_keys();
  return absl::OkStatus();
}

Status ConfigReader::check_switches() const {
  if (file_.has(key("attention.causal"))) {
    OMNIBUS_ASSIGN_OR_RETURN(const bool causal, file_.get_bool(key("attention.causal")));
    if (!causal) return unbuilt(key("attention.causal"), "attention without a causal mask is not supported");
  }
  if (file_.has(key("use_parallel_residual"))) {
    OMNIBUS_ASSIGN_OR_RETURN(const bool parallel, file_.get_bool(key("use_parallel_residual")));
    if (parallel) return unbuilt(key("use_parallel_residual"), "parallel residuals are not supported");
  }
  return absl::OkStatus();
}

// A key that omnibus does not know may change the maths: it is named, not passed over in silence.
void ConfigReader::warn_of_unknown_keys() const {
  const std::string prefix = config_.architecture + ".";
  for (auto it = file_.metadata().lower_bound(prefix); it != file_.metadata().end(); ++it) {
    const std::string_view name = it->first;
    if (!name.starts_with(prefix)) break;
    const std::string_view suffix = name.substr(prefix.size());
    const bool known =
        std::any_of(kKnownKeys.begin(), kKnownKeys.end(), [&](const char* k) { return suffix == k; }) ||
        std::any_of(kOffKeys.begin(), kOffKeys.end(), [&](const OffKey& k) { return suffix == k.key; });
    if (!known)
      log_warning("{}: key {} is not known to omnibus and has no effect", file_.label(), quoted(name));
  }
}

}  // namespace

StatusOr<ModelConfig> read_model_config(const GgufFile& file) {
  auto config = ConfigReader(file).read();
  // A missing key makes the file invalid; "not found" is kept for the file itself.
  if (absl::IsNotFound(config.status())) return absl::InvalidArgumentError(config.status().message());
  return config;
}

}  // namespace omnibus
