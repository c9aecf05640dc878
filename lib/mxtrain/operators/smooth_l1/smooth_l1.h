#pragma once
// smooth_l1(x), with s = scalar: 0.5 s^2 x^2 where |x| < 1 / s^2, |x| - 0.5 / s^2 elsewhere (Girshick, "Fast R-CNN", 2015).
#include "mxtrain/base/macros.h"

namespace mxtrain::smooth_l1 {

template <typename T>
struct Value {
  T s2;
  MXTRAIN_HD T operator()(T x) const { return x > 1 / s2 ? x - T(0.5) / s2 : x < -1 / s2 ? -x - T(0.5) / s2 : T(0.5) * s2 * x * x; }
};
template <typename T>
struct Gradient {
  T s2;
  MXTRAIN_HD T operator()(T head, T x) const { return head * (x > 1 / s2 ? T(1) : x < -1 / s2 ? T(-1) : s2 * x); }
};

}  // namespace mxtrain::smooth_l1
