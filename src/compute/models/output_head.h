// OutputHead: final norm and vocabulary projection of decoder models.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "omnibus/compute/layers/rms_norm.h"
#include "omnibus/compute/models/model.h"

namespace omnibus {

class OutputHead final : public LogitsHead {
 public:
  // `table`: the packed embedding when the model ties them; else "output" is loaded.
  Status load(WeightLoader& loader, const ModelContext& context, const LinearWeight* table);
  // After the weights; `residual` is the stream that forward() leaves.
  Status allocate(const ModelContext& context, const float* residual, Allocator& scratch);

  int32_t max_rows() const override { return max_rows_; }
  int32_t vocab_size() const override { return weight_.n; }
  Status project(std::span<const int32_t> rows, std::span<const HeadRequest> requests,
                 std::span<HeadOutput> outputs) override;

 private:
  OpContext ops_;
  RmsNorm norm_;
  LinearWeight weight_;
  const float* residual_ = nullptr;
  Activations normed_;           // [max_rows, hidden]
  float* logits_ = nullptr;      // [max_rows, vocab]
  float* raw_logits_ = nullptr;  // [max_rows, vocab]
  int32_t max_rows_ = 0;
};

}  // namespace omnibus
