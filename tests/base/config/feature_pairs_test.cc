#include "omnibus/base/config/feature_pairs.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/base/config/commands.h"

namespace omnibus {
namespace {

using ::testing::HasSubstr;

// Law: for every two features, refused iff the table does not list them, in either order.
TEST(FeaturePairs, RefusedExactlyWhenNotListed) {
  ASSERT_FALSE(known_features().empty());
  const auto pairs = allowed_feature_pairs();
  for (const auto a : known_features()) {
    for (const auto b : known_features()) {
      const bool listed = a == b || std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) {
                            return (p.first == a && p.second == b) || (p.first == b && p.second == a);
                          });
      const Status status = check_feature_pairs(std::vector<std::string>{std::string(a), std::string(b)});
      EXPECT_EQ(status.ok(), listed) << a << " + " << b << ": " << status;
      if (!listed) {
        EXPECT_THAT(status_message(status), HasSubstr(std::string(a)));
        EXPECT_THAT(status_message(status), HasSubstr(std::string(b)));
      }
    }
  }
}

TEST(FeaturePairs, PairsNameKnownFeatures) {
  for (const auto& [a, b] : allowed_feature_pairs()) {
    EXPECT_TRUE(check_feature_pairs(std::vector<std::string>{std::string(a)}).ok()) << a;
    EXPECT_TRUE(check_feature_pairs(std::vector<std::string>{std::string(b)}).ok()) << b;
    EXPECT_NE(a, b);
  }
}

// Any server that the command line can ask for, and each feature with a flag is there exactly when asked for.
TEST(FeaturePairs, EveryServerThatCanBeAskedForIsAllowed) {
  using ::testing::Contains;
  for (int bits = 0; bits < 32; ++bits) {
    const auto on = [bits](int bit) { return (bits >> bit & 1) != 0; };
    ServeConfig config;
    config.engine.numerics = on(0) ? NumericsOption::kF32 : NumericsOption::kFast;
    config.engine.enable_prefix_caching = on(1);
    config.engine.async_scheduling = on(2);
    config.engine.scheduling_policy =
        on(3) ? SchedulingPolicyOption::kPriority : SchedulingPolicyOption::kFcfs;
    config.fair_sharing = on(4) ? "equal" : "off";
    const auto features = enabled_features(config);
    EXPECT_TRUE(check_feature_pairs(features).ok()) << check_feature_pairs(features);
    const char* const names[] = {"numerics_f32", "prefix_caching", "async_scheduling", "priority_scheduling",
                                 "fair_sharing"};
    for (int bit = 0; bit < 5; ++bit) {
      EXPECT_EQ(testing::Matches(Contains(names[bit]))(features), on(bit)) << names[bit];
    }
  }
}

TEST(FeaturePairs, UnknownFeatureIsNamed) {
  const Status status = check_feature_pairs(std::vector<std::string>{"telepathy"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status_message(status), HasSubstr("telepathy"));
}

}  // namespace
}  // namespace omnibus
