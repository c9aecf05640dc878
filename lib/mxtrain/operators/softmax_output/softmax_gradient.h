// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by all kernels of SoftmaxOutput's backward pass: labels, divisor and the target that is
// subtracted from the probabilities.
#include <algorithm>
#include <cmath>
#include <span>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {

// gradient = scale * (p - target), where target is `on` for the labelled class and `off` for the
// others; zero for ignored positions.
struct SoftmaxTarget {
  double scale = 1, on = 1, off = 0;
  bool use_ignore = false;
  int64_t ignore = -1;
};
SoftmaxTarget MakeSoftmaxTarget(const SoftmaxOutputParam& param, const SoftmaxView& view,
                                const TBlob& label);
// The same without looking at the labels, of which there are `labels`: with normalization valid,
// `scale` must still be divided by the number of valid ones, or 1.
MXTRAIN_API SoftmaxTarget MakeUncountedTarget(const SoftmaxOutputParam& param,
                                              const SoftmaxView& view, int64_t labels);

// p dL/dp for the term L = w (1 - p)^gamma (-log p) of one class.
class SoftmaxTerm {
 public:
  // Weights passed to a device with the functor, as a kernel argument.
  static constexpr size_t kMostCarried = 256;

  // `weights`: one per class; empty: all 1. More than kMostCarried stay in host memory, for the
  // host alone.
  SoftmaxTerm(std::span<const double> weights, double gamma) : gamma_(gamma) {
    if (weights.size() > kMostCarried) {
      elsewhere_ = weights.data();
    } else {
      std::copy(weights.begin(), weights.end(), carried_);
      weighted_ = !weights.empty();
    }
  }
  MXTRAIN_HD double operator()(int64_t k, double p) const {
    const double weight = weighted_ ? carried_[k] : elsewhere_ ? elsewhere_[k] : 1;
    if (gamma_ == 0) return -weight;
    const double q = 1 - p;
    // p log p is 0 at p = 0, log p / (1 - p) is -1 at p = 1.
    const double ratio = p <= 0 ? 0 : q <= 0 ? -1 : p * std::log(p) / q;
    return weight * std::pow(q > 0 ? q : 0, gamma_) * (gamma_ * ratio - 1);
  }

 private:
  double gamma_;
  bool weighted_ = false;
  const double* elsewhere_ = nullptr;
  double carried_[kMostCarried] = {};
};

}  // namespace mxtrain
