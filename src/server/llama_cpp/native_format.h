// The shape of POST /completion and /infill, whole and streamed (no [DONE] at the end).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/server/http/json_body.h"

#include "api/answer_format.h"

namespace omnibus {

struct NativeFormatOptions {
  std::string model;
  Json settings;                 // generation_settings
  bool seed_per_prompt = false;  // prompt i has the seed of `settings` plus i
  std::vector<std::string>
      prompts;  // as text, control tokens included; choice i is of prompt i / choices_per_prompt
  int32_t choices_per_prompt = 1;
  int64_t n_predict = -1;  // as asked; -1: until the context is full
  bool probabilities = false;
  bool return_tokens = false;      // in a whole answer; a stream always has them
  bool timings_per_token = false;  // in each chunk of a stream
  std::vector<std::string> response_fields;
};

std::unique_ptr<AnswerFormat> make_native_format(NativeFormatOptions options);

}  // namespace omnibus
