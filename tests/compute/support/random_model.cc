#include "random_model.h"

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>

#include "omnibus/compute/core/dtype.h"

namespace omnibus {
namespace {

using Bytes = fakes::GgufWriter::Bytes;
using Rng = std::mt19937_64;

struct Held {
  Bytes bytes;
  std::shared_ptr<const GgufFile> file;
};

void put_half(Bytes& out, double value) { fakes::put(&out, f32_to_f16(static_cast<float>(value))); }

// `count` values with the standard deviation `spread`, as blocks of `type`.
Bytes random_values(Rng& rng, GgmlType type, uint64_t count, double mean, double spread) {
  std::normal_distribution<double> normal(mean, spread);
  std::uniform_int_distribution<int> byte(0, 255);
  Bytes out;
  switch (type) {
    case GgmlType::kF32:
      for (uint64_t i = 0; i < count; ++i) fakes::put(&out, static_cast<float>(normal(rng)));
      return out;
    case GgmlType::kF16:
      for (uint64_t i = 0; i < count; ++i) put_half(out, normal(rng));
      return out;
    case GgmlType::kQ8_0:  // q uniform in [-128, 127]: deviation 74
      for (uint64_t i = 0; i < count; i += 32) {
        put_half(out, spread / 74 * (0.75 + byte(rng) / 512.0));
        for (int j = 0; j < 32; ++j) out.push_back(static_cast<uint8_t>(byte(rng)));
      }
      return out;
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:  // nibbles uniform in [0, 15]: deviation 4.6
      for (uint64_t i = 0; i < count; i += 32) {
        const double scale = spread / 4.6 * (0.75 + byte(rng) / 512.0);
        put_half(out, scale);
        if (type == GgmlType::kQ4_1) put_half(out, -7.5 * scale);
        for (int j = 0; j < 16; ++j) out.push_back(static_cast<uint8_t>(byte(rng)));
      }
      return out;
    default:
      throw std::invalid_argument("random_model: no generator for this type");
  }
}

Bytes random_tensor(Rng& rng, const fakes::GgufWriter::Tensor& tensor) {
  uint64_t count = 1;
  for (uint64_t d : tensor.dims) count *= d;
  const auto type = static_cast<GgmlType>(tensor.type);
  const double fan_in = static_cast<double>(tensor.dims[0]);
  if (tensor.name.ends_with("_norm.weight")) return random_values(rng, type, count, 1.0, 0.15);
  if (tensor.name.ends_with(".bias")) return random_values(rng, type, count, 0.0, 0.3);
  if (tensor.name == "rope_freqs.weight") {
    Bytes out;
    for (uint64_t i = 0; i < count; ++i) fakes::put(&out, 1.0F + static_cast<float>(i) * 0.5F);
    return out;
  }
  if (tensor.name == "token_embd.weight") return random_values(rng, type, count, 0.0, 0.6);
  return random_values(rng, type, count, 0.0, 1.6 / std::sqrt(fan_in));
}

}  // namespace

std::shared_ptr<const GgufFile> make_random_model(const RandomModel& model) {
  fakes::GgufWriter writer = dense_file(model.sizes);
  Rng rng(model.seed);
  for (auto& tensor : writer.tensors()) tensor.data = random_tensor(rng, tensor);
  if (model.edit) model.edit(writer);
  auto held = std::make_shared<Held>();
  held->bytes = writer.bytes();
  auto file = GgufFile::parse(held->bytes, "random_model.gguf");
  if (!file.ok()) throw std::runtime_error("random_model: " + status_message(file.status()));
  held->file = *file;
  return {held, held->file.get()};
}

DenseFile small_llama() {
  DenseFile sizes;
  sizes.freqs = true;
  return sizes;
}

DenseFile small_qwen2() {
  DenseFile sizes;
  sizes.architecture = "qwen2";
  sizes.hidden = 64;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.head_dim = 16;
  sizes.ffn = 96;
  sizes.bias = true;
  sizes.tied = false;
  sizes.matrix_type = GgmlType::kQ8_0;
  return sizes;
}

DenseFile small_qwen3() {
  DenseFile sizes;
  sizes.architecture = "qwen3";
  sizes.hidden = 64;
  sizes.heads = 4;
  sizes.kv_heads = 1;
  sizes.head_dim = 32;
  sizes.ffn = 160;
  sizes.layers = 3;
  sizes.qk_norm = true;
  sizes.matrix_type = GgmlType::kQ4_0;
  return sizes;
}

}  // namespace omnibus
