// SPDX-License-Identifier: Apache-2.0
#pragma once
// my_smooth_l1(x), with s = scalar: 0.5 s^2 x^2 where |x| < 1 / s^2, |x| - 0.5 / s^2 elsewhere.
#include "mxtrain/operator/elementwise_op.h"

struct MySmoothL1 {
  static constexpr const char* kName = "my_smooth_l1";
  static constexpr const char* kDescription =
      "0.5 (scalar x)^2 near zero, |x| - 0.5 / scalar^2 elsewhere";
  using Param = mxtrain::ScalarParam;

  double s2;
  explicit MySmoothL1(mxtrain::ScalarParam param) : s2(param.scalar * param.scalar) {}

  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    const T bend = T(1 / s2), offset = T(0.5 / s2);
    return x > bend ? x - offset : x < -bend ? -x - offset : T(0.5 * s2) * x * x;
  }
};

MXTRAIN_KERNELS(my_smooth_l1, Device, registry) {
  mxtrain::AddElementwise<Device, MySmoothL1>(registry);
}
