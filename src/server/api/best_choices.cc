#include "best_choices.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace omnibus {
namespace {

double mean_logprob(const ChoiceResult& choice) {
  if (choice.logprobs.empty()) return 0;  // nothing was said, and that was certain
  double sum = 0;
  for (const PositionLogprobs& position : choice.logprobs)
    sum += static_cast<double>(position.sampled.logprob);
  return sum / static_cast<double>(choice.logprobs.size());
}

}  // namespace

std::vector<ChoiceResult> best_choices(std::vector<ChoiceResult> choices, int32_t made, int32_t kept) {
  std::vector<ChoiceResult> best;
  for (auto begin = choices.begin(); begin != choices.end(); begin += made) {
    std::stable_sort(begin, begin + made, [](const ChoiceResult& a, const ChoiceResult& b) {
      return mean_logprob(a) > mean_logprob(b);
    });
    std::move(begin, begin + kept, std::back_inserter(best));
  }
  return best;
}

}  // namespace omnibus
