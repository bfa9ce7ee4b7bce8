#include "token_model.h"

#include <algorithm>

#include "omnibus/base/common/rng.h"

namespace omnibus::sim {
namespace {

uint64_t hash_text(uint64_t hash, const std::string& text) {
  hash = splitmix64(hash, text.size());
  for (char c : text) hash = splitmix64(hash, static_cast<unsigned char>(c));
  return hash;
}

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The length of a stop string with which `text` ends; 0: none.
size_t ends_with_stop(const std::string& text, const std::vector<std::string>& stops) {
  for (const std::string& stop : stops)
    if (text.size() >= stop.size() && text.compare(text.size() - stop.size(), stop.size(), stop) == 0)
      return stop.size();
  return 0;
}

}  // namespace

uint64_t extend(uint64_t prefix, TokenId token) {
  return splitmix64(prefix, static_cast<uint64_t>(token) + 1);
}

uint64_t identity_of(const Request& request) {
  uint64_t hash = hash_text(1, request.tenant_salt);
  if (request.adapter) hash = hash_text(hash_text(hash, "adapter"), request.adapter->digest);
  for (const MediaItem& item : request.media)
    hash = splitmix64(hash_text(hash, item.hash), static_cast<uint64_t>(item.offset));
  return hash;
}

TokenId draw(const Request& request, uint64_t prefix, size_t length) {
  const uint64_t hash = splitmix64(prefix ^ request.sampling().seed, length);
  if (hash % 53 == 0) return kEos;
  return kFirstLetter + static_cast<TokenId>((hash >> 16) % kLetters);
}

float logprob_of(size_t position, TokenId token) {
  return -0.0625F * static_cast<float>((position * 7 + static_cast<size_t>(token)) % 160);
}

ExpectedEnd expected_end(const Request& request, const std::vector<std::string>& stops,
                         std::optional<int32_t> nan_at, int32_t max_model_len) {
  const SamplingParams& params = request.sampling();
  ExpectedEnd end;
  uint64_t prefix = identity_of(request);
  for (TokenId token : request.prompt_token_ids) prefix = extend(prefix, token);
  size_t length = request.prompt_token_ids.size();
  while (true) {
    const auto n = static_cast<int32_t>(end.tokens.size());
    if (nan_at && *nan_at == n) {
      end.reason = FinishReason::kError;
      return end;
    }
    const TokenId token = draw(request, prefix, length++);
    prefix = extend(prefix, token);
    end.tokens.push_back(token);
    const bool may_stop = n + 1 > params.min_tokens;
    end.by_eos = may_stop && contains(request.eos_token_ids, token);
    if (end.by_eos || (may_stop && contains(params.stop_token_ids, token))) {
      end.reason = FinishReason::kStop;
      return end;
    }
    if (token != kEos) end.text += static_cast<char>(token);
    end.drawn = end.text;
    if (const size_t size = ends_with_stop(end.text, stops); size > 0 && may_stop && token != kEos) {
      end.text.resize(end.text.size() - size);
      end.reason = FinishReason::kStop;
      end.by_string = true;
      return end;
    }
    if (n + 1 >= params.max_tokens || static_cast<int32_t>(length) >= max_model_len) return end;
  }
}

}  // namespace omnibus::sim
