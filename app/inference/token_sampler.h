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

// A function of the options, the probabilities and the number of the draw in its text. Not
// thread-safe: reuses its memory.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options) : options_(options) {}
  // `probabilities`: of each token. Of equal ones the token with the lowest id comes first. Throws
  // kDiverged if one is not finite. `text`: its number, of several.
  int64_t Draw(std::span<const float> probabilities, int64_t number, int64_t text = 0);

 private:
  double WeightOf(int64_t token) const;
  // The token of this rank. Few ranks are asked for, of many tokens, so they are sorted as needed.
  int64_t Ranked(size_t rank);

  const SamplingOptions options_;
  std::span<const float> probabilities_;
  double largest_ = 0;          // of probabilities_
  std::vector<int64_t> order_;  // the first sorted_ by falling probability
  size_t sorted_ = 0;
};

}  // namespace mxtrain::inference
