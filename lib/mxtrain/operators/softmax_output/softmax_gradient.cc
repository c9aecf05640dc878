#include "mxtrain/operators/softmax_output/softmax_gradient.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace mxtrain {
namespace {

int64_t CountValid(const TBlob& label, int64_t ignore) {
  const LabelReader labels(label);
  std::atomic<int64_t> valid{0};
  ParallelFor(label.Size(), kParallelGrain, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += labels.Class(i) != ignore;
    valid += count;
  });
  return valid;
}

double Divisor(const SoftmaxOutputParam& param, const SoftmaxView& view, const TBlob& label) {
  switch (param.normalization) {
    case kSoftmaxBatch:
      return static_cast<double>(std::max<int64_t>(1, label.Size()));
    // Counts with ignore_label even where use_ignore is off, as the reference system does.
    case kSoftmaxValid:
      return static_cast<double>(std::max<int64_t>(1, CountValid(label, static_cast<int64_t>(param.ignore_label))));
    // The positions of a sample: not 1 for multi_output, as in the reference system.
    default:
      return static_cast<double>(param.multi_output ? std::max<int64_t>(1, view.inner) : 1);
  }
}

}  // namespace

LabelReader::LabelReader(const TBlob& label) : data_(label.data), read_(nullptr) {
  SwitchType(label.type, "SoftmaxOutput's label", [this](auto tag) {
    using T = typename decltype(tag)::type;
    read_ = [](const void* data, int64_t i) { return static_cast<double>(static_cast<const T*>(data)[i]); };
  });
}

SoftmaxTarget MakeSoftmaxTarget(const SoftmaxOutputParam& param, const SoftmaxView& view, const TBlob& label) {
  SoftmaxTarget target;
  target.scale = param.grad_scale / Divisor(param, view, label);
  target.use_ignore = param.use_ignore;
  target.ignore = static_cast<int64_t>(param.ignore_label);
  if (!param.multi_output && param.smooth_alpha > 0 && view.classes > 1) {
    target.on = 1.0 - param.smooth_alpha;
    target.off = param.smooth_alpha / static_cast<double>(view.classes - 1);
  }
  return target;
}

double SoftmaxTerm::operator()(int64_t k, double p) const {
  const double weight = weights_.empty() ? 1.0 : weights_[static_cast<size_t>(k)];
  if (gamma_ == 0) return -weight;
  const double q = 1 - p;
  // p log p is 0 at p = 0, log p / (1 - p) is -1 at p = 1.
  const double ratio = p <= 0 ? 0.0 : q <= 0 ? -1.0 : p * std::log(p) / q;
  return weight * std::pow(std::max(q, 0.0), gamma_) * (gamma_ * ratio - 1);
}

}  // namespace mxtrain
