// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activation functions of later nets than Activation's (activation.h), each from its value alone:
//   gelu         x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel, arXiv
//                1606.08415); approximate = tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//   silu         x sigmoid(x), also called swish (Elfwing, Uchibe and Doya, arXiv 1702.03118)
//   mish         x tanh(log(1 + e^x)) (Misra, arXiv 1908.08681)
//   hard_swish   x min(max(x + 3, 0), 6) / 6 (Howard et al., arXiv 1905.02244)
//   log_sigmoid  log(1 / (1 + e^-x))
#include "mxtrain/operator/elementwise_op.h"

namespace mxtrain::smooth_activations {

enum Approximation : int { kExact, kTanh };

struct GeluParam : Parameter<GeluParam> {
  int approximate;
  static void Declare(Fields<GeluParam>& f) {
    f.Add("approximate", &GeluParam::approximate)
        .Enum({{"none", kExact}, {"tanh", kTanh}})
        .Default(kExact)
        .Help("none: by the error function; tanh: the approximation of the paper");
  }
};

struct ExactGelu {
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    return T(0.5) * x * (T(1) + vector_math::Erf(x * T(0.70710678118654752)));
  }
};
struct TanhGelu {
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    const T inner = T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + vector_math::Tanh(inner));
  }
};
struct Gelu {
  static constexpr const char* kName = "gelu";
  static constexpr const char* kDescription = "x times the normal distribution function of x";
  using Param = GeluParam;
  template <typename Body>
  static void Visit(const GeluParam& param, const Body& body) {
    if (param.approximate == kExact) {
      body(ExactGelu{});
    } else {
      body(TanhGelu{});
    }
  }
};

struct Silu {
  static constexpr const char* kName = "silu";
  static constexpr const char* kDescription = "x / (1 + e^-x), for every element x";
  using Param = NoParam;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    return x * vector_math::Sigmoid(x);
  }
};

struct Mish {
  static constexpr const char* kName = "mish";
  static constexpr const char* kDescription = "x tanh(log(1 + e^x)), for every element x";
  using Param = NoParam;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    return x * vector_math::Tanh(vector_math::Softplus(x));
  }
};

struct HardSwish {
  static constexpr const char* kName = "hard_swish";
  static constexpr const char* kDescription = "x min(max(x + 3, 0), 6) / 6, for every element x";
  using Param = NoParam;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    const T shifted = x + T(3), most(6), none(0);
    const T above = vector_math::Choose(shifted < none, none, shifted);
    const T gate = vector_math::Choose(above > most, most, above);
    return x * (gate * T(1.0 / 6));
  }
};

struct LogSigmoid {
  static constexpr const char* kName = "log_sigmoid";
  static constexpr const char* kDescription = "log(1 / (1 + e^-x)), for every element x";
  using Param = NoParam;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD T operator()(T x) const {
    return -vector_math::Softplus(-x);
  }
};

}  // namespace mxtrain::smooth_activations

MXTRAIN_KERNELS(smooth_activations, Device, registry) {
  using namespace mxtrain::smooth_activations;
  mxtrain::AddElementwise<Device, Gelu>(registry);
  mxtrain::AddElementwise<Device, Silu>(registry);
  mxtrain::AddElementwise<Device, Mish>(registry);
  mxtrain::AddElementwise<Device, HardSwish>(registry);
  mxtrain::AddElementwise<Device, LogSigmoid>(registry);
}
