#include "omnibus/contract/step/plan_digest.h"

#include <bit>
#include <string_view>

namespace omnibus {
namespace {

// FNV-1a over 64-bit words with a final avalanche per word: cheap, and any difference spreads. Whatever has a
// length or alternatives says which first, so that no two plans give the same words.
class Digest {
 public:
  explicit Digest(uint64_t seed) : h_(seed ^ 0xCBF29CE484222325ULL) {}

  void add(uint64_t v) {
    h_ = (h_ ^ v) * 0x100000001B3ULL;
    h_ ^= h_ >> 29;
  }
  void add_float(float f) { add(std::bit_cast<uint32_t>(f)); }
  void add_text(std::string_view s) {
    add(s.size());
    for (char c : s) add(static_cast<unsigned char>(c));
  }
  template <typename Container>
  void add_all(const Container& items) {
    add(items.size());
    for (auto item : items) add(static_cast<uint64_t>(item));
  }
  uint64_t value() const { return h_; }

 private:
  uint64_t h_;
};

void add_sampling(Digest& d, const SamplingParams& p) {
  for (float f :
       {p.temperature, p.top_p, p.min_p, p.repetition_penalty, p.presence_penalty, p.frequency_penalty})
    d.add_float(f);
  d.add(static_cast<uint64_t>(p.top_k));
  d.add(static_cast<uint64_t>(p.penalty_window));
  d.add(p.logit_bias.size());
  for (auto [id, bias] : p.logit_bias) {
    d.add(static_cast<uint64_t>(id));
    d.add_float(bias);
  }
  d.add_all(p.allowed_token_ids);
  d.add(p.bad_sequences.size());
  for (const auto& ids : p.bad_sequences) d.add_all(ids);
  d.add_all(p.logprob_token_ids);
  d.add(p.seed);
  d.add(static_cast<uint64_t>(p.logprobs.value_or(-1)));
  d.add(static_cast<uint64_t>(p.prompt_logprobs.value_or(-1)));
  d.add(static_cast<uint64_t>(p.min_tokens));
  d.add_all(p.stop_token_ids);
}

void add_new(Digest& d, const NewRequestData& data) {
  d.add(data.request.id);
  d.add_all(data.request.prompt_token_ids);
  d.add_all(data.output_token_ids);
  d.add_all(data.request.eos_token_ids);
  d.add(data.request.adapter ? 1 : 0);
  if (data.request.adapter) d.add_text(data.request.adapter->digest);
  d.add(data.request.media.size());
  for (const auto& item : data.request.media) {
    d.add(static_cast<uint64_t>(item.offset));
    d.add_text(item.hash);
  }
  d.add(data.request.params.index());
  if (!data.request.is_pooling()) add_sampling(d, data.request.sampling());
}

void add_row(Digest& d, const ScheduledRow& row) {
  d.add(row.id);
  d.add(row.new_blocks.size());
  for (const auto& blocks : row.new_blocks) d.add_all(blocks);
  d.add(static_cast<uint64_t>(row.base_computed));
  d.add(static_cast<uint64_t>(row.n_tokens));
  d.add(row.source.index());
  if (const auto* from = std::get_if<FromStep>(&row.source)) {
    d.add(from->seq);
    d.add(static_cast<uint64_t>(from->row));
  }
  d.add_all(row.drafts);
  d.add(static_cast<uint64_t>(row.adapter_slot));
  d.add(row.samples ? 1 : 0);
}

}  // namespace

PlanDigest digest_plan(PlanDigest previous, const SchedulerOutput& plan) {
  Digest d(previous);
  d.add(plan.id.epoch);
  d.add(plan.id.seq);
  d.add(static_cast<uint64_t>(plan.numerics));
  d.add(plan.new_requests.size());
  for (const auto& data : plan.new_requests) add_new(d, data);
  d.add(plan.rows.size());
  for (const auto& row : plan.rows) add_row(d, row);
  d.add_all(plan.finished);
  d.add_all(plan.preempted);
  d.add_text(plan.connector_meta.bytes);
  return d.value();
}

}  // namespace omnibus
