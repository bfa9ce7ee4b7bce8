// best_of: more answers are made than are returned.
#pragma once

#include <vector>

#include "answer_format.h"

namespace omnibus {

// Of every `made` neighbours in `choices` the `kept` with the highest mean logprob per token, best first,
// equal ones in the order in which they were made. Choices carry logprobs.
std::vector<ChoiceResult> best_choices(std::vector<ChoiceResult> choices, int32_t made, int32_t kept);

}  // namespace omnibus
