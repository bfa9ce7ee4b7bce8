// Request: one sequence of the engine core. n > 1 is fanned out before the core (ParentRequest).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/sha256.h"
#include "omnibus/contract/request/sampling_params.h"

namespace omnibus {

enum class RequestStatus { kWaiting, kRunning, kPreempted, kWaitingRemoteKv, kFinished };

// Why a sequence ended. kAbort and kError never reach a client as a finish_reason: they become an error.
enum class FinishReason { kStop, kLength, kAbort, kError };
const char* to_string(FinishReason reason);  // "stop" | "length" | "abort" | "error"

// A span of prompt positions filled by an encoder (images, audio). Carried, refused at admission until media
// exist.
struct MediaItem {
  int32_t offset = 0;  // first prompt position
  int32_t length = 0;  // positions
  std::string hash;    // of the content, for prefix keys
  std::vector<int64_t> shape;
  std::string blob_ref;
};

struct AdapterRef {
  std::string id;
  std::string digest;
};

struct Request {
  RequestId id = 0;
  std::vector<TokenId> prompt_token_ids;  // >= 1
  std::variant<SamplingParams, PoolingParams> params;
  std::vector<MediaItem> media;
  std::optional<AdapterRef> adapter;
  std::string tenant_salt;  // mixes into prefix keys
  // Chain keys of the prompt's full blocks, in order (control/kv_cache/block_key.h), as many as were made
  // before admission: hashing a long prompt is not the engine thread's work. The scheduler makes the rest.
  std::vector<Digest256> prefix_keys;
  std::string tenant;    // name of the key that it came with; for fair sharing
  int32_t priority = 0;  // lower first, under the priority policy
  std::optional<MonotonicNs> deadline;
  MonotonicNs arrival_ns = 0;
  std::vector<TokenId> eos_token_ids;  // end-of-generation set of the model; empty under ignore_eos

  const SamplingParams& sampling() const { return std::get<SamplingParams>(params); }
  bool is_pooling() const { return std::holds_alternative<PoolingParams>(params); }
};

}  // namespace omnibus
