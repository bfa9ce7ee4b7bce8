#include "tensor_rules.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quoted.h"

namespace omnibus::model_files {
namespace {

// A vector (norm, bias, frequency factors) is F32, F16 or BF16; a matrix may also have a type from Q4_0 to
// Q6_K.
enum class Role { kVector, kMatrix };

struct Rule {
  std::vector<int64_t> shape;
  Role role;
};
using Rules = std::map<std::string, Rule, std::less<>>;

void add_layer(const ModelConfig& c, int32_t layer, Rules* rules) {
  const std::string b = fmt::format("blk.{}.", layer);
  const int64_t hidden = c.hidden_size;
  const int64_t ffn = c.intermediate_size;
  const int64_t q = int64_t{c.num_heads} * c.head_dim;
  const int64_t kv = int64_t{c.num_kv_heads} * c.head_dim;
  const auto matrix = [&](const char* name, int64_t in, int64_t out) {
    rules->emplace(b + name, Rule{{in, out}, Role::kMatrix});
  };
  const auto vector = [&](const char* name, int64_t size) {
    rules->emplace(b + name, Rule{{size}, Role::kVector});
  };
  vector("attn_norm.weight", hidden);
  matrix("attn_q.weight", hidden, q);
  matrix("attn_k.weight", hidden, kv);
  matrix("attn_v.weight", hidden, kv);
  matrix("attn_output.weight", q, hidden);
  vector("ffn_norm.weight", hidden);
  matrix("ffn_gate.weight", hidden, ffn);
  matrix("ffn_up.weight", hidden, ffn);
  matrix("ffn_down.weight", ffn, hidden);
  if (c.attention_bias) {
    vector("attn_q.bias", q);
    vector("attn_k.bias", kv);
    vector("attn_v.bias", kv);
  }
  if (c.qk_norm) {
    vector("attn_q_norm.weight", c.head_dim);
    vector("attn_k_norm.weight", c.head_dim);
  }
}

Rules rules_of(const ModelConfig& c) {
  Rules rules;
  rules.emplace("token_embd.weight", Rule{{c.hidden_size, c.vocab_size}, Role::kMatrix});
  rules.emplace("output_norm.weight", Rule{{c.hidden_size}, Role::kVector});
  if (!c.tied_head) rules.emplace("output.weight", Rule{{c.hidden_size, c.vocab_size}, Role::kMatrix});
  if (c.rope.has_freq_factors) rules.emplace("rope_freqs.weight", Rule{{c.rope.dims / 2}, Role::kVector});
  for (int32_t layer = 0; layer < c.num_layers; ++layer) add_layer(c, layer, &rules);
  return rules;
}

// Trailing dimensions of 1 do not count.
std::vector<int64_t> trimmed(std::vector<int64_t> dims) {
  while (dims.size() > 1 && dims.back() == 1) dims.pop_back();
  return dims;
}

bool type_fits(GgmlType type, Role role) {
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
      return true;
    case GgmlType::kI8:
    case GgmlType::kI16:
    case GgmlType::kI32:
    case GgmlType::kI64:
    case GgmlType::kF64:
      return false;
    default:
      return role == Role::kMatrix;
  }
}

Status check_tensor(const GgufFile& file, const GgufTensorInfo& tensor, const Rule& rule) {
  if (trimmed(tensor.dims) != trimmed(rule.shape)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: tensor {} has shape [{}], but the file's sizes ask for [{}]", file.label(),
                    quoted(tensor.name), fmt::join(tensor.dims, ", "), fmt::join(rule.shape, ", ")));
  }
  if (!type_fits(tensor.type, rule.role)) {
    return absl::InvalidArgumentError(fmt::format("{}: tensor {} has type {}, which does not fit its use",
                                                  file.label(), quoted(tensor.name),
                                                  ggml_type_name(static_cast<uint32_t>(tensor.type))));
  }
  return absl::OkStatus();
}

bool in_any_layer(const GgufFile& file, const ModelConfig& config, const char* name) {
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    if (file.find_tensor(fmt::format("blk.{}.{}", layer, name)) != nullptr) return true;
  }
  return false;
}

}  // namespace

Status apply_tensor_rules(const GgufFile& file, ModelConfig* config) {
  config->tied_head = file.find_tensor("output.weight") == nullptr;
  // Present in one layer means wanted in all, so that a gap is reported as the missing tensor.
  config->attention_bias = in_any_layer(file, *config, "attn_q.bias");
  config->qk_norm = config->architecture == "qwen3";
  config->rope.has_freq_factors =
      config->architecture == "llama" && file.find_tensor("rope_freqs.weight") != nullptr;
  const Rules rules = rules_of(*config);
  for (const auto& [name, rule] : rules) {
    const GgufTensorInfo* tensor = file.find_tensor(name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(fmt::format("{}: tensor {} is missing", file.label(), quoted(name)));
    }
    OMNIBUS_RETURN_IF_ERROR(check_tensor(file, *tensor, rule));
  }
  for (const GgufTensorInfo& tensor : file.tensors()) {
    if (rules.contains(tensor.name)) continue;
    return absl::UnimplementedError(
        fmt::format("{}: tensor {} is not one that omnibus uses in architecture {} with {} layers",
                    file.label(), quoted(tensor.name), quoted(config->architecture), config->num_layers));
  }
  return absl::OkStatus();
}

void summarise_tensors(const GgufFile& file, ModelConfig* config) {
  std::map<GgmlType, int64_t> counts;
  config->parameters = 0;
  for (const GgufTensorInfo& tensor : file.tensors()) {
    config->parameters += tensor.elements();
    if (tensor.dims.size() > 1) ++counts[tensor.type];
  }
  int64_t most = 0;
  for (const auto& [type, count] : counts) {
    if (count <= most) continue;
    most = count;
    config->quantization = ggml_type_name(static_cast<uint32_t>(type));
  }
}

}  // namespace omnibus::model_files
