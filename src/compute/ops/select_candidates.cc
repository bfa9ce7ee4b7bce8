#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "omnibus/base/common/check.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus_kernels/cpu_table.h"

namespace omnibus {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

const kernels::CpuTable& best_table() {
  for (const kernels::Isa isa : {kernels::Isa::kAvx512, kernels::Isa::kAvx2}) {
    if (const kernels::CpuTable* table = kernels::cpu_table(isa)) return *table;
  }
  return *kernels::cpu_table(kernels::Isa::kGeneric);
}

bool adjusts(const HeadRequest& r) {
  const bool penalties = r.repetition_penalty != 1 || r.frequency_penalty != 0 || r.presence_penalty != 0;
  return (penalties && !r.counts.empty()) || !r.bias.empty() || !r.allowed_mask.empty() || !r.banned.empty();
}

void apply_penalties(std::span<float> logits, const HeadRequest& r) {
  for (const TokenCount& count : r.counts) {
    if (count.id < 0 || static_cast<size_t>(count.id) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(count.id)];
    if (count.in_prompt > 0 || count.in_output > 0) {
      logit = logit > 0 ? logit / r.repetition_penalty : logit * r.repetition_penalty;
    }
    if (count.in_output > 0) {
      logit -= r.frequency_penalty * static_cast<float>(count.in_output);
      logit -= r.presence_penalty;
    }
  }
}

void apply_mask(std::span<float> logits, std::span<const uint32_t> mask) {
  for (size_t base = 0; base < logits.size(); base += 32) {
    const uint32_t allowed = base / 32 < mask.size() ? mask[base / 32] : 0;
    if (allowed == 0xFFFFFFFFU) continue;
    const size_t end = std::min(base + 32, logits.size());
    for (size_t i = base; i < end; ++i) {
      if (((allowed >> (i - base)) & 1U) == 0) logits[i] = kMasked;
    }
  }
}

void adjust(std::span<float> logits, const HeadRequest& r) {
  apply_penalties(logits, r);
  for (const auto& [id, bias] : r.bias) {
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] += bias;
  }
  if (!r.allowed_mask.empty()) apply_mask(logits, r.allowed_mask);
  for (const int32_t id : r.banned) {
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] = kMasked;
  }
}

bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Keeps the `wanted` best, in any order; returns the worst of them.
float prune(std::vector<Candidate>& best, size_t wanted) {
  const auto worst = best.begin() + static_cast<ptrdiff_t>(wanted) - 1;
  std::nth_element(best.begin(), worst, best.end(), better);
  best.resize(wanted);
  return best.back().logit;
}

// The k best in descending order, without a sort of the row: candidates above a threshold gather, and
// whenever there are twice as many as wanted the better half stays and its worst member is the new threshold.
// Ids come in ascending order, so a later logit equal to the threshold never displaces an earlier one.
void top_k(const kernels::CpuTable& table, std::span<const float> logits, int32_t k,
           std::vector<Candidate>& best) {
  best.clear();
  const auto wanted = static_cast<size_t>(std::max(k, 0));
  if (wanted == 0) return;
  const auto n = static_cast<int64_t>(logits.size());
  std::array<int32_t, 64> ids;
  float threshold = kMasked;
  for (int64_t at = 0; at < n;) {
    const int64_t found =
        table.above(logits.data(), &at, n, threshold, ids.data(), static_cast<int64_t>(ids.size()));
    for (int64_t i = 0; i < found; ++i) {
      const int32_t id = ids[static_cast<size_t>(i)];
      best.push_back({logits[static_cast<size_t>(id)], id});
    }
    if (best.size() >= 2 * wanted + ids.size()) threshold = prune(best, wanted);
  }
  if (best.size() > wanted) prune(best, wanted);
  std::sort(best.begin(), best.end(), better);
}

}  // namespace

void select_candidates(std::span<float> logits, std::span<float> raw, const HeadRequest& request,
                       HeadOutput& output) {
  static const kernels::CpuTable& table = best_table();
  output.candidates.clear();
  output.raw_candidates.clear();
  output.full = {};
  output.raw = {};
  output.raw_lse = 0;
  const float max = table.max_finite(logits.data(), static_cast<int64_t>(logits.size()), &output.finite);
  if (!output.finite) return;
  if (request.raw_k >= 0) {
    output.raw_lse = static_cast<double>(max) +
                     std::log(table.sum_exp(logits.data(), static_cast<int64_t>(logits.size()), max));
    top_k(table, logits, request.raw_k, output.raw_candidates);
  }
  if (adjusts(request)) {
    if (request.raw_k >= 0) {
      OMNIBUS_CHECK(raw.size() == logits.size(),
                    "head: logprobs of an adjusted row need room for its raw logits");
      std::memcpy(raw.data(), logits.data(), logits.size_bytes());
      output.raw = raw;
    }
    adjust(logits, request);
  } else if (request.raw_k >= 0) {
    output.raw = logits;
  }
  if (request.full) output.full = logits;
  top_k(table, logits, request.k, output.candidates);
}

}  // namespace omnibus
