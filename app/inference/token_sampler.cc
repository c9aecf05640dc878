// SPDX-License-Identifier: Apache-2.0
#include "app/inference/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::inference {
namespace {

// More probable first, then the lower id.
struct Before {
  std::span<const float> probabilities;
  bool operator()(int64_t a, int64_t b) const {
    const float pa = probabilities[static_cast<size_t>(a)],
                pb = probabilities[static_cast<size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  }
};

}  // namespace

double TokenSampler::WeightOf(int64_t token) const {
  const auto p = static_cast<double>(probabilities_[static_cast<size_t>(token)]);
  if (options_.temperature == 1 || p == 0) return p;
  return std::exp(std::log(p / largest_) / options_.temperature);  // the largest is 1
}

int64_t TokenSampler::Ranked(size_t rank) {
  constexpr size_t kFirst = 64, kGrowth = 4;
  if (rank >= sorted_) {
    const size_t end = std::min(std::max({kFirst, kGrowth * sorted_, rank + 1}), order_.size());
    std::partial_sort(order_.begin() + static_cast<ptrdiff_t>(sorted_),
                      order_.begin() + static_cast<ptrdiff_t>(end), order_.end(),
                      Before{probabilities_});
    sorted_ = end;
  }
  return order_[rank];
}

int64_t TokenSampler::Draw(std::span<const float> probabilities, int64_t number, int64_t text) {
  if (!std::ranges::all_of(probabilities, [](float p) { return std::isfinite(p); }))
    Throw(ErrorKind::kDiverged, "the net's probabilities are not finite");
  probabilities_ = probabilities;
  order_.resize(probabilities.size());
  std::iota(order_.begin(), order_.end(), int64_t{0});
  sorted_ = 0;
  if (options_.temperature == 0) return *std::ranges::min_element(order_, Before{probabilities_});
  largest_ = static_cast<double>(std::ranges::max(probabilities_));
  size_t kept = order_.size();
  double sum = 0;
  if (options_.top_k > 0 && options_.top_k < std::ssize(order_)) {
    kept = static_cast<size_t>(options_.top_k);
    for (size_t rank = 0; rank < kept; ++rank) sum += WeightOf(Ranked(rank));
  } else {
    for (const int64_t token : order_) sum += WeightOf(token);
  }
  if (options_.top_p < 1) {
    const double enough = options_.top_p * sum;
    const size_t most = std::exchange(kept, size_t{0});
    sum = 0;
    while (kept < most && (kept == 0 || sum < enough)) sum += WeightOf(Ranked(kept++));
  }
  const double drawn =
      io::RandomStream(options_.seed, text, number, "inference.generate").Uniform(0, sum);
  double reached = 0;
  for (size_t rank = 0; rank < kept; ++rank) {
    reached += WeightOf(Ranked(rank));
    if (drawn < reached) return Ranked(rank);
  }
  return Ranked(kept - 1);
}

}  // namespace mxtrain::inference
