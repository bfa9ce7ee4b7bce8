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

TEST(FeaturePairs, EveryEngineThatCanBeAskedForIsAllowed) {
  EngineOptions engine;
  for (const auto numerics : {NumericsOption::kFast, NumericsOption::kF32}) {
    engine.numerics = numerics;
    const auto features = enabled_features(engine);
    EXPECT_GE(features.size(), 2u);
    EXPECT_TRUE(check_feature_pairs(features).ok()) << check_feature_pairs(features);
  }
  EXPECT_THAT(enabled_features(engine), ::testing::Contains("numerics_f32"));
}

TEST(FeaturePairs, UnknownFeatureIsNamed) {
  const Status status = check_feature_pairs(std::vector<std::string>{"telepathy"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status_message(status), HasSubstr("telepathy"));
}

}  // namespace
}  // namespace omnibus
