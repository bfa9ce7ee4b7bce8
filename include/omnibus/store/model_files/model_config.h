// ModelConfig: the sizes and switches of one model, whatever file they came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"

namespace omnibus {

class GgufFile;

enum class RopeStyle { kNorm, kNeox };  // pairs (2i, 2i+1) or (i, i + d/2)
enum class RopeScaling { kNone, kLinear, kYarn, kLongRope };

struct RopeConfig {
  RopeStyle style = RopeStyle::kNorm;
  int32_t dims = 0;  // rotated dimensions of a head
  double freq_base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // kLinear
  bool has_freq_factors = false;  // tensor rope_freqs.weight divides the frequencies (llama3)
};

struct ModelConfig {
  std::string architecture;  // GGUF name: "llama", "qwen2", "qwen3"
  std::string name;          // general.name or the file's stem
  int32_t vocab_size = 0;
  int32_t context_length = 0;
  int32_t hidden_size = 0;
  int32_t num_layers = 0;
  int32_t intermediate_size = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  double rms_norm_eps = 1e-5;
  RopeConfig rope;
  bool tied_head = false;       // no output.weight: the embedding is the head
  bool attention_bias = false;  // attn_q.bias ... present
  bool qk_norm = false;         // attn_q_norm / attn_k_norm present
  int64_t parameters = 0;       // elements of all tensors
  int64_t file_bytes = 0;
  std::string quantization;  // e.g. "Q4_1" (the commonest tensor type)
};

// Reads and cross-checks the keys of an architecture that omnibus runs; refuses others by name, and any key
// whose feature is not built (e.g. a rope scaling) by key.
StatusOr<ModelConfig> read_model_config(const GgufFile& file);

}  // namespace omnibus
