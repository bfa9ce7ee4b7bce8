// The names under which a request's KV is cached, and what is found under them.
#include "omnibus/control/kv_cache/block_key.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"

namespace omnibus {
namespace {

KeyRoot key_root(const SchedulerConfig& config, const Request& request) {
  return {.model = config.model,
          .adapter = request.adapter ? request.adapter->digest : std::string_view(),
          .salt = request.tenant_salt};
}

std::vector<KeySpan> key_spans(const Request& request) {
  std::vector<KeySpan> spans;
  for (const MediaItem& item : request.media)
    spans.push_back({item.offset, item.length, item.hash, item.shape});
  return spans;
}

}  // namespace

std::vector<Digest256> Scheduler::make_prefix_keys(const Request& request) const {
  std::vector<Digest256> keys;
  if (config_.prefix_caching)
    extend_block_keys(key_root(config_, request), request.prompt_token_ids, kv_->tokens_per_key(),
                      key_spans(request), keys);
  return keys;
}

void Scheduler::extend_keys(Sequence& s, int32_t n_tokens) const {
  extend_block_keys(key_root(config_, s.request), std::span(s.tokens).first(static_cast<size_t>(n_tokens)),
                    kv_->tokens_per_key(), key_spans(s.request), s.keys);
}

// The last known token is always computed: the next is sampled from it. Logprobs of a prompt come from
// computing it, so a request for them computes all.
ComputedBlocks Scheduler::find_prefix(Sequence& s) const {
  if (!config_.prefix_caching || s.request.sampling().prompt_logprobs) return {};
  extend_keys(s, s.known());
  return kv_->get_computed_blocks({s.tokens, s.keys}, s.known() - 1);
}

}  // namespace omnibus
