// SPDX-License-Identifier: Apache-2.0
#include "app/inference/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::inference {

int64_t TokenSampler::Draw(std::span<const float> probabilities, int64_t number) {
  if (!std::ranges::all_of(probabilities, [](float p) { return std::isfinite(p); }))
    Throw(ErrorKind::kDiverged, "the net's probabilities are not finite");
  order_.resize(probabilities.size());
  std::iota(order_.begin(), order_.end(), int64_t{0});
  const auto before = [probabilities](int64_t a, int64_t b) {
    const float pa = probabilities[static_cast<size_t>(a)],
                pb = probabilities[static_cast<size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  };
  if (options_.temperature == 0) return *std::ranges::min_element(order_, before);
  if (options_.top_k > 0 && options_.top_k < std::ssize(order_)) {
    std::ranges::partial_sort(order_, order_.begin() + options_.top_k, before);
    order_.resize(static_cast<size_t>(options_.top_k));
  } else {
    std::ranges::sort(order_, before);
  }
  weights_.clear();
  for (const int64_t token : order_) {
    const auto p = static_cast<double>(probabilities[static_cast<size_t>(token)]);
    weights_.push_back(p > 0 ? std::exp(std::log(p) / options_.temperature) : 0);
  }
  const double all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < weights_.size() && (kept == 0 || sum < options_.top_p * all))
    sum += weights_[kept++];
  const double drawn =
      io::RandomStream(options_.seed, 0, number, "inference.generate").Uniform(0, sum);
  double reached = 0;
  for (size_t i = 0; i < kept; ++i) {
    reached += weights_[i];
    if (drawn < reached) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace mxtrain::inference
