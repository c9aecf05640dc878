// SPDX-License-Identifier: Apache-2.0
#pragma once
// smooth_l1(x), with s = scalar: 0.5 s^2 x^2 if |x| < 1 / s^2, else |x| - 0.5 / s^2 (Girshick,
// "Fast R-CNN", 2015).
#include "mxtrain/operator/elementwise_op.h"

namespace mxtrain {

struct SmoothL1 {
  static constexpr const char* kName = "smooth_l1";
  static constexpr const char* kDescription =
      "0.5 (scalar x)^2 near zero, |x| - 0.5 / scalar^2 elsewhere";
  using Param = ScalarParam;

  double s2;
  explicit SmoothL1(ScalarParam param) : s2(param.scalar * param.scalar) {}

  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    const T bend = T(1 / s2), offset = T(0.5 / s2);
    return x > bend ? x - offset : x < -bend ? -x - offset : T(0.5 * s2) * x * x;
  }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(smooth_l1, Device, registry) {
  mxtrain::AddElementwise<Device, mxtrain::SmoothL1>(registry);
}
