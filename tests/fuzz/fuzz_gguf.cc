// GGUF: container, model config and vocabulary of any bytes. What parses must be consistent: every tensor's
// data lies in the file, every id in the vocabulary.
#include <cstdint>
#include <cstdlib>

#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"
#include "omnibus/store/model_files/tokenizer_spec.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_tensors(const omnibus::GgufFile& file) {
  uint64_t total = 0;
  for (const omnibus::GgufTensorInfo& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor);
    const auto data = file.tensor_data(tensor);
    require(data.size() == tensor.bytes);
    total += data.size();
    if (!data.empty()) {
      const volatile uint8_t first = data.front();
      const volatile uint8_t last = data.back();
      (void)first;
      (void)last;
    }
  }
  require(total <= file.file_bytes());  // no two overlap
}

void check_spec(const omnibus::TokenizerSpec& spec) {
  const auto size = static_cast<omnibus::TokenId>(spec.tokens.size());
  require(spec.kinds.size() == spec.tokens.size());
  require(spec.scores.empty() || spec.scores.size() == spec.tokens.size());
  for (const omnibus::TokenId id : {spec.bos, spec.eos, spec.eot, spec.eom, spec.unknown, spec.padding}) {
    require(id >= omnibus::kNoToken && id < size);
  }
  for (const omnibus::TokenId id : spec.end_of_generation) require(id >= 0 && id < size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = omnibus::GgufFile::parse({data, size}, "fuzz");
  if (!file.ok()) {
    require(!file.status().message().empty());
    return 0;
  }
  check_tensors(**file);
  if (auto config = omnibus::read_model_config(**file); config.ok()) {
    require(config->num_heads % config->num_kv_heads == 0 && config->rope.dims <= config->head_dim);
  }
  if (auto spec = omnibus::read_tokenizer_spec(**file); spec.ok()) check_spec(*spec);
  return 0;
}
