#include "omnibus/client/load_plan.h"

#include <cmath>
#include <utility>

#include "random_stream.h"

namespace omnibus::client {
namespace {

constexpr int32_t kShortest = 4, kLongestPrompt = 1024, kLongestTotal = 2048;
constexpr double kPromptMean = 161.31, kAnswerMean = 337.99;
constexpr double kPromptSpread = 5696.0 / 1730, kAnswerSpread = 834.0 / 415;
constexpr double kNormal90 = 1.2815515655446004;  // the normal distribution's 90th percentile

// A log-normal distribution by its mean and the ratio of its 90th percentile to its median.
int32_t length_of_mean(RandomStream& random, double mean, double spread) {
  const double sigma = std::log(spread) / kNormal90;
  const double mu = std::log(mean) - sigma * sigma / 2;
  return static_cast<int32_t>(std::min(std::lround(random.log_normal(mu, sigma)), 1L << 30));
}

std::pair<int32_t, int32_t> sharegpt_lengths(RandomStream& random) {
  while (true) {
    const int32_t prompt = length_of_mean(random, kPromptMean, kPromptSpread);
    const int32_t answer = length_of_mean(random, kAnswerMean, kAnswerSpread);
    if (prompt >= kShortest && answer >= kShortest && prompt <= kLongestPrompt &&
        prompt + answer <= kLongestTotal) {
      return {prompt, answer};
    }
  }
}

int32_t uniform_length(RandomStream& random, int32_t length, double ratio) {
  const auto low = std::max<int64_t>(1, static_cast<int64_t>(std::floor(length * (1 - ratio))));
  const auto high = static_cast<int64_t>(std::ceil(length * (1 + ratio)));
  return static_cast<int32_t>(low + random.below(high - low + 1));
}

std::vector<double> arrival_times(const BenchServeConfig& config, int32_t count) {
  std::vector<double> times(static_cast<size_t>(count), 0.0);
  if (std::isinf(config.request_rate) || count < 2) return times;
  RandomStream random(config.seed, 1);
  for (size_t i = 1; i < times.size(); ++i) {
    times[i] = times[i - 1] + (std::isinf(config.burstiness) ? 1 : random.gamma(config.burstiness));
  }
  const double stretch = times.back() > 0 ? (count - 1) / config.request_rate / times.back() : 0;
  for (double& time : times) time *= stretch;
  return times;
}

}  // namespace

std::vector<PlannedRequest> make_load_plan(const BenchServeConfig& config, int32_t count) {
  const std::vector<double> times = arrival_times(config, count);
  RandomStream lengths(config.seed, 2), prefixes(config.seed, 3);
  std::vector<PlannedRequest> plan(times.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    PlannedRequest& request = plan[i];
    request.at = static_cast<MonotonicNs>(times[i] * 1e9);
    if (config.dataset == BenchDataset::kShareGpt) {
      std::tie(request.input_len, request.output_len) = sharegpt_lengths(lengths);
    } else {
      request.input_len = uniform_length(lengths, config.random_input_len, config.random_range_ratio);
      request.output_len = uniform_length(lengths, config.random_output_len, config.random_range_ratio);
    }
    request.prefix = static_cast<int32_t>(prefixes.below(config.num_prefixes));
  }
  return plan;
}

}  // namespace omnibus::client
