#pragma once
// What every implementation of SoftmaxOutput's backward pass shares: labels, divisor and the target that is subtracted from the
// probabilities.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {

// Labels of any type as double.
class LabelReader {
 public:
  explicit LabelReader(const TBlob& label);
  double operator()(int64_t i) const { return read_(data_, i); }
  int64_t Class(int64_t i) const { return static_cast<int64_t>(read_(data_, i)); }

 private:
  const void* data_;
  double (*read_)(const void*, int64_t);
};

// gradient = scale * (p - target), where target is `on` for the labelled class and `off` for the others; nothing for ignored positions.
struct SoftmaxTarget {
  double scale = 1, on = 1, off = 0;
  bool use_ignore = false;
  int64_t ignore = -1;
};
SoftmaxTarget MakeSoftmaxTarget(const SoftmaxOutputParam& param, const SoftmaxView& view, const TBlob& label);

// p dL/dp for the term L = w (1 - p)^gamma (-log p) of one class.
class SoftmaxTerm {
 public:
  explicit SoftmaxTerm(const SoftmaxOutputParam& param) : weights_(param.class_weights), gamma_(param.focal_gamma) {}
  double operator()(int64_t k, double p) const;

 private:
  std::span<const double> weights_;
  double gamma_;
};

}  // namespace mxtrain
