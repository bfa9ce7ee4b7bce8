// llama_eval: full logits of llama.cpp, teacher-forced, in the file format of omnibus-eval, so that both can
// be held against one float64 reference. Usage: llama_eval MODEL.gguf IDS.txt OUT.bin [THREADS] IDS.txt: one
// sequence of token ids per line. OUT.bin: see tests/tools/omnibus_eval.cc.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "llama_eval: %s\n", message.c_str());
  std::exit(1);
}

std::vector<std::vector<llama_token>> read_sequences(const char* path) {
  std::ifstream in(path);
  if (!in) fail(std::string("cannot read ") + path);
  std::vector<std::vector<llama_token>> sequences;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<llama_token> ids;
    for (llama_token id; words >> id;) ids.push_back(id);
    if (!ids.empty()) sequences.push_back(std::move(ids));
  }
  return sequences;
}

void write_u32(std::ofstream& out, uint32_t v) { out.write(reinterpret_cast<const char*>(&v), sizeof v); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: llama_eval MODEL.gguf IDS.txt OUT.bin [THREADS]");
  const auto sequences = read_sequences(argv[2]);
  size_t longest = 0;
  for (const auto& s : sequences) longest = std::max(longest, s.size());
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) fail("cannot load the model");
  auto params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(longest);
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(longest);
  params.n_threads = params.n_threads_batch = argc > 4 ? std::atoi(argv[4]) : 2;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) fail("cannot make a context");
  const auto vocab = static_cast<uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
  std::ofstream out(argv[3], std::ios::binary);
  out.write("OMNILOGT", 8);
  write_u32(out, 1);
  write_u32(out, vocab);
  write_u32(out, static_cast<uint32_t>(sequences.size()));
  for (const auto& ids : sequences) {
    llama_memory_clear(llama_get_memory(context), true);
    llama_batch batch = llama_batch_init(static_cast<int32_t>(ids.size()), 0, 1);
    for (size_t i = 0; i < ids.size(); ++i) {
      batch.token[i] = ids[i];
      batch.pos[i] = static_cast<llama_pos>(i);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    batch.n_tokens = static_cast<int32_t>(ids.size());
    if (llama_decode(context, batch) != 0) fail("llama_decode failed");
    write_u32(out, static_cast<uint32_t>(ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) {
      const float* logits = llama_get_logits_ith(context, static_cast<int32_t>(i));
      out.write(reinterpret_cast<const char*>(logits), static_cast<std::streamsize>(vocab * sizeof(float)));
    }
    llama_batch_free(batch);
  }
  llama_free(context);
  llama_model_free(model);
}
