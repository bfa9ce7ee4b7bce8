// The shape of Generate's and Chat's answers: a stream of omnibus.v1.GenerationUpdate.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"

#include "api/answer_format.h"

namespace omnibus {

struct UpdateFormatOptions {
  std::string id_prefix;  // "cmpl-"
  std::string model;
  bool include_reasoning = true;
  bool logprobs = false;
  bool include_timings = false;
  int32_t prompt_logprobs = 0;            // most alternatives per token of the prompt
  std::vector<TokenId> prompt_token_ids;  // when asked for
};

std::unique_ptr<AnswerFormat> make_update_format(UpdateFormatOptions options);

}  // namespace omnibus
