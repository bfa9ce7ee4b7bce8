// Parallel = single: any tensor-parallel size gives the bits of one rank (docs/design.md, Numerics), with
// shares uneven and empty.
#include <thread>

#include <gtest/gtest.h>

#include "compute/support/random_model.h"
#include "compute/support/teacher_forcing.h"
#include "compute/support/thread_communicator.h"

namespace omnibus {
namespace {

using Rows = std::vector<std::vector<float>>;

// Logits of `ids`: the ranks' vocabulary shares joined.
Rows logits_of(const std::shared_ptr<const GgufFile>& file, Numerics numerics, int32_t ranks,
               const std::vector<TokenId>& ids) {
  const auto communicators = make_thread_communicators(ranks);
  std::vector<std::unique_ptr<TeacherForcing>> models;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    TeacherForcingOptions options;
    options.numerics = numerics;
    options.threads = 1;
    options.chunk = 11;
    options.parallel.tp_rank = rank;
    options.parallel.tp_size = ranks;
    options.tp = communicators[static_cast<size_t>(rank)].get();
    auto model = TeacherForcing::create(file, options);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {};
    models.push_back(*std::move(model));
  }
  std::vector<Rows> shares(models.size(), Rows(ids.size()));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < models.size(); ++rank)
    threads.emplace_back([&, rank] {
      const Status status = models[rank]->run(ids, 0, [&](int32_t position, std::span<const float> logits) {
        shares[rank][static_cast<size_t>(position)].assign(logits.begin(), logits.end());
      });
      EXPECT_TRUE(status.ok()) << status;
    });
  for (std::thread& t : threads) t.join();
  Rows joined(ids.size());
  for (size_t p = 0; p < ids.size(); ++p)
    for (const Rows& share : shares) joined[p].insert(joined[p].end(), share[p].begin(), share[p].end());
  return joined;
}

TEST(ParallelEqualsSingleTest, AnyTensorParallelSizeGivesTheSameBits) {
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 40; ++i) ids.push_back(i * 37 % 263);
  for (const DenseFile& sizes : {small_llama(), small_qwen2(), small_qwen3()}) {
    RandomModel model;
    model.sizes = sizes;
    const auto file = make_random_model(model);
    for (Numerics numerics : {Numerics::kFast, Numerics::kF32}) {
      const Rows single = logits_of(file, numerics, 1, ids);
      ASSERT_EQ(single[0].size(), 263U);
      for (int32_t ranks : {2, 3, 4}) EXPECT_EQ(logits_of(file, numerics, ranks, ids), single) << ranks;
    }
  }
}

}  // namespace
}  // namespace omnibus
