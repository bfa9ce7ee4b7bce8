#include "dense_file.h"

namespace omnibus {
namespace {

// The printable stand-in of a byte, UTF-8 encoded.
std::string byte_text(int byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

void set_byte_vocabulary(fakes::GgufWriter* file) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_text(byte));
  const std::string space = byte_text(' ');
  tokens.insert(tokens.end(), {"he", "ll", space + "he", space + "hell"});
  std::vector<int32_t> kinds(tokens.size(), 1);
  kinds[0] = kinds[1] = kinds[2] = 3;
  file->set_string("tokenizer.ggml.model", "gpt2");
  file->set_string("tokenizer.ggml.pre", "smollm");
  file->set_strings("tokenizer.ggml.tokens", tokens);
  file->set_i32s("tokenizer.ggml.token_type", kinds);
  file->set_strings("tokenizer.ggml.merges", {"h e", "l l", space + " he", space + "he ll"});
  file->set_u32("tokenizer.ggml.bos_token_id", 1);
  file->set_u32("tokenizer.ggml.eos_token_id", 2);
  file->set_u32("tokenizer.ggml.unknown_token_id", 0);
  file->set_u32("tokenizer.ggml.padding_token_id", 2);
  file->set_bool("tokenizer.ggml.add_bos_token", false);
  file->set_string("tokenizer.chat_template", "{{ messages[0].content }}");
}

fakes::GgufWriter dense_file(const DenseFile& sizes) {
  fakes::GgufWriter file;
  const std::string a = sizes.architecture + ".";
  const uint64_t vocab = sizes.vocab != 0 ? sizes.vocab : 263;
  file.set_string("general.architecture", sizes.architecture);
  file.set_string("general.name", "Small one");
  file.set_u32(a + "block_count", static_cast<uint32_t>(sizes.layers));
  file.set_u32(a + "context_length", 128);
  file.set_u32(a + "embedding_length", static_cast<uint32_t>(sizes.hidden));
  file.set_u32(a + "feed_forward_length", static_cast<uint32_t>(sizes.ffn));
  file.set_u32(a + "attention.head_count", static_cast<uint32_t>(sizes.heads));
  file.set_u32(a + "attention.head_count_kv", static_cast<uint32_t>(sizes.kv_heads));
  file.set_f32(a + "attention.layer_norm_rms_epsilon", 1e-5f);
  file.set_f32(a + "rope.freq_base", 100000.0f);
  if (sizes.head_dim * sizes.heads != sizes.hidden) {
    file.set_u32(a + "attention.key_length", static_cast<uint32_t>(sizes.head_dim));
    file.set_u32(a + "attention.value_length", static_cast<uint32_t>(sizes.head_dim));
  }
  set_byte_vocabulary(&file);

  const uint64_t q = sizes.heads * sizes.head_dim;
  const uint64_t kv = sizes.kv_heads * sizes.head_dim;
  const GgmlType m = sizes.matrix_type;
  file.add_tensor("token_embd.weight", {sizes.hidden, vocab}, m);
  for (uint64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string b = "blk." + std::to_string(layer) + ".";
    file.add_tensor(b + "attn_norm.weight", {sizes.hidden}, GgmlType::kF32);
    file.add_tensor(b + "attn_q.weight", {sizes.hidden, q}, m);
    file.add_tensor(b + "attn_k.weight", {sizes.hidden, kv}, m);
    file.add_tensor(b + "attn_v.weight", {sizes.hidden, kv}, m);
    file.add_tensor(b + "attn_output.weight", {q, sizes.hidden}, m);
    file.add_tensor(b + "ffn_norm.weight", {sizes.hidden}, GgmlType::kF32);
    file.add_tensor(b + "ffn_gate.weight", {sizes.hidden, sizes.ffn}, m);
    file.add_tensor(b + "ffn_up.weight", {sizes.hidden, sizes.ffn}, m);
    file.add_tensor(b + "ffn_down.weight", {sizes.ffn, sizes.hidden}, m);
    if (sizes.bias) {
      file.add_tensor(b + "attn_q.bias", {q}, GgmlType::kF32);
      file.add_tensor(b + "attn_k.bias", {kv}, GgmlType::kF32);
      file.add_tensor(b + "attn_v.bias", {kv}, GgmlType::kF32);
    }
    if (sizes.qk_norm) {
      file.add_tensor(b + "attn_q_norm.weight", {sizes.head_dim}, GgmlType::kF32);
      file.add_tensor(b + "attn_k_norm.weight", {sizes.head_dim}, GgmlType::kF32);
    }
  }
  file.add_tensor("output_norm.weight", {sizes.hidden}, GgmlType::kF32);
  if (!sizes.tied) file.add_tensor("output.weight", {sizes.hidden, vocab}, m);
  if (sizes.freqs) file.add_tensor("rope_freqs.weight", {sizes.head_dim / 2}, GgmlType::kF32, 1);
  return file;
}

}  // namespace omnibus
