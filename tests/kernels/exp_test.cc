// The exponential of softmax, log-sum-exp and SiLU, seen through sum_exp of one value.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus_kernels/cpu_table.h"

namespace omnibus {
namespace {

std::vector<const kernels::CpuTable*> tables() {
  std::vector<const kernels::CpuTable*> found;
  for (const kernels::Isa isa : {kernels::Isa::kGeneric, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (const kernels::CpuTable* table = kernels::cpu_table(isa)) found.push_back(table);
  }
  return found;
}

double exp_of(const kernels::CpuTable& table, float x) { return table.sum_exp(&x, 1, 0.0F); }

TEST(Exp, IsWithinTwoUlpsAndTheSameOnEveryIsa) {
  for (float x = -85.99F; x < 88.7F; x += 0.00731F) {
    const double expected = std::exp(static_cast<double>(x));
    const double first = exp_of(*tables()[0], x);
    ASSERT_NEAR(first, expected, expected * 1.6e-7) << x;
    for (const kernels::CpuTable* table : tables())
      ASSERT_EQ(exp_of(*table, x), first) << table->name << " " << x;
  }
}

TEST(Exp, EndsOfTheRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const kernels::CpuTable* table : tables()) {
    EXPECT_EQ(exp_of(*table, 0.0F), 1.0) << table->name;
    EXPECT_EQ(exp_of(*table, -kInf), 0.0) << table->name;  // a masked score
    EXPECT_EQ(exp_of(*table, -87.0F), 0.0) << table->name;
    EXPECT_EQ(exp_of(*table, 89.0F), kInf) << table->name;
    EXPECT_EQ(exp_of(*table, kInf), kInf) << table->name;
    EXPECT_TRUE(std::isnan(exp_of(*table, std::nanf("")))) << table->name;
  }
}

}  // namespace
}  // namespace omnibus
