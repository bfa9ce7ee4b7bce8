// What Ollama's lists say about a model's file.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/store/model_files/gguf.h"

namespace omnibus {

struct ModelDetails {
  std::string family;        // GGUF architecture; "" when the file cannot be read
  int64_t parameters = 0;    // elements of all tensors
  std::string quantization;  // "Q4_1"
};

ModelDetails describe_gguf(const GgufFile& file);

// {parent_model, format, family, families, parameter_size, quantization_level}
Json details_json(const ModelDetails& details);

// "134.5M", "8.0B"
std::string parameter_size(int64_t parameters);

// GGUF metadata as model_info: general.* and the like; arrays are null unless `verbose`. Adds
// general.parameter_count where the file has none.
Json model_info_json(const GgufFile& file, bool verbose);

// Details by digest: a file is opened once. Thread-safe.
class ModelDetailsCache {
 public:
  // Details of the file at `path`; empty ones when it cannot be read.
  ModelDetails get(const std::string& digest, const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, ModelDetails> by_digest_;
};

}  // namespace omnibus
