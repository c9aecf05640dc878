// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions whose gradient is not their derivative:
//   gradientmultiplier   x; the gradient is multiplied by `scalar`
//   round_ste            x rounded, halves away from zero; the gradient passes unchanged
//   sign_ste             the sign of x; the gradient passes unchanged
// The last two are straight-through estimators (Bengio, Leonard and Courville, arXiv 1308.3432).
#include "mxtrain/operator/elementwise_op.h"

namespace mxtrain::gradient_changes {

struct GradientMultiplier {
  static constexpr const char* kName = "gradientmultiplier";
  static constexpr const char* kDescription = "the data; their gradient is multiplied by scalar";
  using Param = ScalarParam;
  double scalar;
  explicit GradientMultiplier(ScalarParam param) : scalar(param.scalar) {}
  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    return x;
  }
  template <typename T>
  MXTRAIN_HD Dual<T> operator()(Dual<T> x) const {
    return {x.value, static_cast<T>(scalar) * x.slope};
  }
};

struct RoundSte {
  static constexpr const char* kName = "round_ste";
  static constexpr const char* kDescription =
      "the data rounded to integers; the gradient passes unchanged";
  using Param = NoParam;
  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    return std::round(x);
  }
  template <typename T>
  MXTRAIN_HD Dual<T> operator()(Dual<T> x) const {
    return {std::round(x.value), x.slope};
  }
};

struct SignSte {
  static constexpr const char* kName = "sign_ste";
  static constexpr const char* kDescription =
      "1 if x > 0, -1 if x < 0, else 0; the gradient passes unchanged";
  using Param = NoParam;
  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
  template <typename T>
  MXTRAIN_HD Dual<T> operator()(Dual<T> x) const {
    return {(*this)(x.value), x.slope};
  }
};

template <typename Device, typename F>
void Add(OperatorRegistry& registry, [[maybe_unused]] const char* alias) {
  AddElementwise<Device, F>(registry);
  if constexpr (std::is_same_v<Device, OnCpu>) SimpleOp(registry, F::kName).add_alias(alias);
}

}  // namespace mxtrain::gradient_changes

MXTRAIN_KERNELS(gradient_changes, Device, registry) {
  using namespace mxtrain::gradient_changes;
  Add<Device, GradientMultiplier>(registry, "_contrib_gradientmultiplier");
  Add<Device, RoundSte>(registry, "_contrib_round_ste");
  Add<Device, SignSte>(registry, "_contrib_sign_ste");
}
