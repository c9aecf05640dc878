// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which token comes next: one is drawn of the probabilities that a net gives.
#include <cstdint>
#include <span>
#include <vector>

namespace mxtrain::inference {

struct SamplingOptions {
  double temperature = 1;  // probabilities become p^(1 / temperature); 0: the most probable token
  int64_t top_k = 0;       // of the most probable tokens alone; 0: of all
  double top_p = 1;        // of the fewest that together have this probability
  uint64_t seed = 0;
};

// A function of the options, the probabilities and the number of the draw. Not thread-safe: reuses
// its memory.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options) : options_(options) {}
  // `probabilities`: of each token. Of equal ones the token with the lowest id comes first. Throws
  // kDiverged if one is not finite.
  int64_t Draw(std::span<const float> probabilities, int64_t number);

 private:
  const SamplingOptions options_;
  std::vector<int64_t> order_;   // tokens, the most probable first
  std::vector<double> weights_;  // of them
};

}  // namespace mxtrain::inference
