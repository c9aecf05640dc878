// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax_output/softmax_gradient.h"

#include <algorithm>
#include <atomic>

namespace mxtrain {
namespace {

int64_t CountValid(const TBlob& label, int64_t ignore) {
  const NumberReader labels(label);
  std::atomic<int64_t> valid{0};
  ParallelFor(label.Size(), kParallelGrain, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += labels.Index(i) != ignore;
    valid += count;
  });
  return valid;
}

double Divisor(const SoftmaxOutputParam& param, const SoftmaxView& view, int64_t labels) {
  switch (param.normalization) {
    case kSoftmaxBatch:
      return static_cast<double>(std::max<int64_t>(1, labels));
    case kSoftmaxValid:
      return 1;
    // The positions of a sample: not 1 for multi_output, as in MXNet.
    default:
      return static_cast<double>(param.multi_output ? std::max<int64_t>(1, view.inner) : 1);
  }
}

}  // namespace

SoftmaxTarget MakeUncountedTarget(const SoftmaxOutputParam& param, const SoftmaxView& view,
                                  int64_t labels) {
  SoftmaxTarget target;
  target.scale = param.grad_scale / Divisor(param, view, labels);
  target.use_ignore = param.use_ignore;
  target.ignore = static_cast<int64_t>(param.ignore_label);
  if (!param.multi_output && param.smooth_alpha > 0 && view.classes > 1) {
    target.on = 1.0 - param.smooth_alpha;
    target.off = param.smooth_alpha / static_cast<double>(view.classes - 1);
  }
  return target;
}

SoftmaxTarget MakeSoftmaxTarget(const SoftmaxOutputParam& param, const SoftmaxView& view,
                                const TBlob& label) {
  SoftmaxTarget target = MakeUncountedTarget(param, view, label.Size());
  // Counts with ignore_label even if use_ignore is off, as MXNet does.
  if (param.normalization == kSoftmaxValid) {
    target.scale =
        param.grad_scale / static_cast<double>(std::max<int64_t>(
                               1, CountValid(label, static_cast<int64_t>(param.ignore_label))));
  }
  return target;
}

}  // namespace mxtrain
