// A complete small file of one of the dense architectures, to be spoilt by tests.
#pragma once

#include <string>

#include "fakes/gguf_writer.h"

namespace omnibus {

struct DenseFile {
  std::string architecture = "llama";
  uint64_t hidden = 96, layers = 2, heads = 6, kv_heads = 3, head_dim = 16, ffn = 64, vocab = 0;
  bool tied = true, bias = false, qk_norm = false, freqs = false;
  GgmlType matrix_type = GgmlType::kQ4_1;
};

// A byte-level vocabulary: 256 byte tokens, a few merged ones, and three control tokens; 263 in all.
void set_byte_vocabulary(fakes::GgufWriter* file);
// Metadata, vocabulary and tensors (all zero).
fakes::GgufWriter dense_file(const DenseFile& sizes = {});

}  // namespace omnibus
