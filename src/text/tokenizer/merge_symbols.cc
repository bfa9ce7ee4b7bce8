#include "merge_symbols.h"

#include <algorithm>
#include <functional>

namespace omnibus {
namespace {

// Up to here a scan for the lowest rank (vectorised by the compiler) beats any queue.
constexpr size_t kScanLimit = 256;

void merge_by_scan(const MergeTable& table, MergeWorkspace& work) {
  std::vector<int32_t>& symbols = work.symbols;
  std::vector<uint32_t>& ranks = work.ranks;
  size_t n = symbols.size();
  ranks.resize(n);
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = table.rank(symbols[i], symbols[i + 1]);
  work.steps += n;
  while (n > 1) {
    uint32_t best = MergeTable::kNoRank;
    for (size_t i = 0; i + 1 < n; ++i) best = std::min(best, ranks[i]);
    if (best == MergeTable::kNoRank) break;
    const size_t at = static_cast<size_t>(std::find(ranks.begin(), ranks.end(), best) - ranks.begin());
    symbols[at] = table.merge(best).result;
    const auto offset = static_cast<std::ptrdiff_t>(at);
    std::copy(symbols.begin() + offset + 2, symbols.begin() + static_cast<std::ptrdiff_t>(n),
              symbols.begin() + offset + 1);
    std::copy(ranks.begin() + offset + 2, ranks.begin() + static_cast<std::ptrdiff_t>(n),
              ranks.begin() + offset + 1);
    --n;
    if (at + 1 < n) ranks[at] = table.rank(symbols[at], symbols[at + 1]);
    if (at > 0) ranks[at - 1] = table.rank(symbols[at - 1], symbols[at]);
    work.steps += 2;
  }
  symbols.resize(n);
}

// A doubly linked list of symbols, and for each rank that occurs the places where it does. Buckets instead of
// one big heap: a heap of 16 million places would miss the cache at every step, a bucket is walked in order.
//
// While the bucket of pair (a, b) -> c is at work, nothing is added to it: whatever appears meanwhile
// contains c, which is longer than a and b. So each bucket is sorted once, and leftmost-first holds.
class LongMerger {
 public:
  LongMerger(const MergeTable& table, MergeWorkspace& work)
      : table_(table), work_(work), symbols_(work.symbols), next_(symbols_.size()), prev_(symbols_.size()) {}

  void run() {
    const size_t n = symbols_.size();
    for (size_t i = 0; i < n; ++i) {
      prev_[i] = i == 0 ? kEnd : static_cast<uint32_t>(i - 1);
      next_[i] = i + 1 == n ? kEnd : static_cast<uint32_t>(i + 1);
    }
    for (size_t i = 0; i + 1 < n; ++i) add_pair(static_cast<uint32_t>(i));
    while (!queue_.empty()) work_through(queue_.top());
    size_t kept = 0;
    for (uint32_t i = 0; i != kEnd; i = next_[i]) symbols_[kept++] = symbols_[i];
    symbols_.resize(kept);
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;
  static constexpr int32_t kGone = INT32_MIN;
  struct Bucket {
    std::vector<uint32_t> places;
    size_t done = 0;
    bool sorted = true;
  };

  void add_pair(uint32_t at) {
    ++work_.steps;
    const uint32_t rank = table_.rank(symbols_[at], symbols_[next_[at]]);
    if (rank == MergeTable::kNoRank) return;
    Bucket& bucket = buckets_[rank];
    if (bucket.places.empty()) queue_.push(rank);
    if (!bucket.places.empty() && bucket.places.back() > at) bucket.sorted = false;
    bucket.places.push_back(at);
  }

  // Joins the pairs of one rank until none is left or a better rank appeared.
  void work_through(uint32_t rank) {
    Bucket& bucket = buckets_[rank];
    if (!bucket.sorted) {
      std::sort(bucket.places.begin(), bucket.places.end());
      bucket.sorted = true;
    }
    const Merge merge = table_.merge(rank);
    while (bucket.done < bucket.places.size() && queue_.top() == rank) {
      ++work_.steps;
      const uint32_t at = bucket.places[bucket.done++];
      const uint32_t after = next_[at];
      if (symbols_[at] != merge.left || after == kEnd || symbols_[after] != merge.right) continue;
      symbols_[at] = merge.result;
      symbols_[after] = kGone;
      next_[at] = next_[after];
      if (next_[at] != kEnd) {
        prev_[next_[at]] = at;
        add_pair(at);
      }
      if (prev_[at] != kEnd) add_pair(prev_[at]);
    }
    if (queue_.top() == rank) {
      queue_.pop();
      buckets_.erase(rank);
    }
  }

  const MergeTable& table_;
  MergeWorkspace& work_;
  std::vector<int32_t>& symbols_;
  std::vector<uint32_t> next_, prev_;
  std::unordered_map<uint32_t, Bucket> buckets_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> queue_;
};

}  // namespace

void merge_symbols(const MergeTable& table, MergeWorkspace& work) {
  if (work.symbols.size() < 2) return;
  if (work.symbols.size() <= kScanLimit) {
    merge_by_scan(table, work);
  } else {
    LongMerger(table, work).run();
  }
}

}  // namespace omnibus
