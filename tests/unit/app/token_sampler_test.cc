// SPDX-License-Identifier: Apache-2.0
// Draws of the next token against the probabilities that the options make of those given.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "app/inference/token_sampler.h"
#include "tests/support/error_message.h"

namespace mxtrain::inference {
namespace {

const std::vector<float> kProbabilities = {0.05F, 0.4F, 0.0F, 0.25F, 0.2F, 0.1F};

std::vector<double> SharesOf(const SamplingOptions& options, int64_t draws) {
  TokenSampler sampler(options);
  std::vector<double> shares(kProbabilities.size());
  for (int64_t i = 0; i < draws; ++i)
    shares[static_cast<size_t>(sampler.Draw(kProbabilities, i))] +=
        1.0 / static_cast<double>(draws);
  return shares;
}

// Within five deviations of a share of so many draws.
void CheckShares(const SamplingOptions& options, std::vector<double> wanted) {
  constexpr int64_t kDraws = 20'000;
  double all = 0;
  for (const double weight : wanted) all += weight;
  const std::vector<double> shares = SharesOf(options, kDraws);
  for (size_t k = 0; k < wanted.size(); ++k) {
    const double p = wanted[k] / all;
    CAPTURE(k);
    CHECK(std::abs(shares[k] - p) <= 1e-9 + 5 * std::sqrt(p * (1 - p) / double(kDraws)));
  }
}

}  // namespace

TEST_CASE("tokens are drawn by their probabilities, as temperature, top_k and top_p change them") {
  const std::vector<double> plain = {0.05, 0.4, 0, 0.25, 0.2, 0.1};
  CheckShares({}, plain);
  std::vector<double> sharp, flat;
  for (const double p : plain) sharp.push_back(p * p), flat.push_back(std::sqrt(p));
  CheckShares({.temperature = 0.5}, sharp);
  CheckShares({.temperature = 2}, flat);
  CheckShares({.top_k = 3}, {0, 0.4, 0, 0.25, 0.2, 0});
  CheckShares({.top_k = 100}, plain);
  CheckShares({.top_p = 0.6}, {0, 0.4, 0, 0.25, 0, 0});  // the fewest that have 0.6 together
  CheckShares({.top_p = 0.7}, {0, 0.4, 0, 0.25, 0.2, 0});
  CheckShares({.top_p = 0}, {0, 1, 0, 0, 0, 0});
  CheckShares({.temperature = 0}, {0, 1, 0, 0, 0, 0});
  for (const double cold : {0.01, 1e-3, 1e-9, 1e-300})
    CheckShares({.temperature = cold}, {0, 1, 0, 0, 0, 0});
  CheckShares({.top_k = 3, .top_p = 0.5}, {0, 0.4, 0, 0.25, 0, 0});  // of 0.85
}

TEST_CASE("a draw depends on the seed and its number alone") {
  TokenSampler one({.seed = 5}), same({.seed = 5}), other({.seed = 6});
  int differ = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const int64_t token = one.Draw(kProbabilities, i);
    CHECK(same.Draw(kProbabilities, i) == token);
    differ += other.Draw(kProbabilities, i) != token;
  }
  CHECK(differ > 50);
  CHECK(one.Draw(kProbabilities, 7) == same.Draw(kProbabilities, 7));
}

TEST_CASE(
    "of equally probable tokens the lowest is the most probable; what is not finite is told") {
  TokenSampler greedy({.temperature = 0});
  CHECK(greedy.Draw(std::vector<float>{0.2F, 0.4F, 0.4F}, 0) == 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(test::MessageOf([&] {
          greedy.Draw(std::vector<float>{0.5F, nan}, 0);
        }) == "the net's probabilities are not finite");
}

}  // namespace mxtrain::inference
