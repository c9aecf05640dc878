// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of reductions and of their gradients, in double.
#include <limits>

#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operators/reduce/reduce.h"

namespace mxtrain::reduce {

// What the slope of a reduction reads besides the number of terms.
enum class SlopeReads { kNothing, kInput, kResult };

// Each reduction is a fold (operator/reduction.h); the final value for n elements; and the factor
// of the head gradient at x, where y is the result.
struct Sum : SumFold {
  static constexpr const char* kName = "sum";
  static constexpr SlopeReads kSlopeReads = SlopeReads::kNothing;
  MXTRAIN_HD static double End(double sum, double) { return sum; }
  MXTRAIN_HD static double Slope(double, double, double) { return 1; }
};
struct Mean : Sum {
  static constexpr const char* kName = "mean";
  MXTRAIN_HD static double End(double sum, double n) { return sum / n; }
  MXTRAIN_HD static double Slope(double, double, double n) { return 1 / n; }
};
struct NanSum : Sum {
  static constexpr const char* kName = "nansum";
  static constexpr SlopeReads kSlopeReads = SlopeReads::kInput;
  MXTRAIN_HD static double Step(double sum, double x) { return x != x ? sum : sum + x; }
  MXTRAIN_HD static double Slope(double x, double, double) { return x != x ? 0 : 1; }
};
// The product without one factor: y / x.
struct Prod {
  static constexpr const char* kName = "prod";
  static constexpr SlopeReads kSlopeReads = SlopeReads::kResult;
  static constexpr double kStart = 1;
  MXTRAIN_HD static double Step(double product, double x) { return product * x; }
  MXTRAIN_HD static double Join(double a, double b) { return a * b; }
  MXTRAIN_HD static double End(double product, double) { return product; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return y / x; }
};
struct NanProd : Prod {
  static constexpr const char* kName = "nanprod";
  MXTRAIN_HD static double Step(double product, double x) { return x != x ? product : product * x; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return x != x ? 0 : y / x; }
};
struct Max {
  static constexpr const char* kName = "max";
  static constexpr SlopeReads kSlopeReads = SlopeReads::kResult;
  static constexpr bool kSelects = true;
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  template <typename A>
  MXTRAIN_HD static A Step(A best, A x) {
    return ((x > best) | (x != x)) ? x : best;
  }
  template <typename A>
  MXTRAIN_HD static A Join(A a, A b) {
    return Step(a, b);
  }
  MXTRAIN_HD static double End(double best, double) { return best; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return x == y ? 1 : 0; }
};
struct Min : Max {
  static constexpr const char* kName = "min";
  static constexpr double kStart = std::numeric_limits<double>::infinity();
  template <typename A>
  MXTRAIN_HD static A Step(A best, A x) {
    return ((x < best) | (x != x)) ? x : best;
  }
  template <typename A>
  MXTRAIN_HD static A Join(A a, A b) {
    return Step(a, b);
  }
};

// v(Functor{}) for every reduction.
template <typename V>
void ForEachReduction(V&& v) {
  v(Sum{}), v(Mean{}), v(NanSum{}), v(Prod{}), v(NanProd{}), v(Max{}), v(Min{});
}

// Stores the result of a fold with n terms each.
template <typename F, typename T>
struct StoreResult {
  StoreFold<T> store;
  double n;
  MXTRAIN_HD void operator()(int64_t i, double folded) const { store(i, F::End(folded, n)); }
};

// For the results in double that a gradient reads.
inline int64_t ResultBytes(const Reduction& reduction) {
  return reduction.kept.size * static_cast<int64_t>(sizeof(double));
}
template <typename F>
int64_t ScratchBytes(const TShape& shape, const AxisFlags& axes) {
  const Reduction reduction(shape, axes);
  return reduction.ScratchBytes() +
         (F::kSlopeReads == SlopeReads::kResult ? ResultBytes(reduction) : 0);
}

// y = F of x over `axes`. `scratch`: ScratchBytes.
template <typename F, typename Device>
void Reduce(const Device& device, const TBlob& x, const AxisFlags& axes, const TBlob& y,
            OpReqType req, double* scratch) {
  if (req == OpReqType::kNullOp) return;
  const Reduction reduction(x.shape, axes);
  SwitchFloating(x.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ReduceOver<F>(
        device, reduction, ArraySource<T>{x.dptr<T>()}, scratch,
        StoreResult<F, T>{{y.dptr<T>(), req}, static_cast<double>(reduction.reduced.size)});
  });
}

// A slope of zero gives zero for any head gradient.
template <typename F, typename C>
struct HeadTimesSlope {
  double n;
  MXTRAIN_HD C operator()(C head) const { return (*this)(head, C(0), 0.0); }
  MXTRAIN_HD C operator()(C head, C x) const { return (*this)(head, x, 0.0); }
  MXTRAIN_HD C operator()(C head, C x, double y) const {
    const double slope = F::Slope(static_cast<double>(x), y, n);
    return static_cast<C>(slope == 0 ? 0 : static_cast<double>(head) * slope);
  }
};

// dx = head * F::Slope. `x`: null where the slope does not read it. Results that it reads are
// folded again, in double.
template <typename F, typename Device>
void SpreadHead(const Device& device, const TBlob& head, const void* x, const AxisFlags& axes,
                const TBlob& dx, OpReqType req, double* scratch) {
  if (req == OpReqType::kNullOp) return;
  const Reduction reduction(dx.shape, axes);
  const TShape kept = KeptShape(dx.shape, axes);
  const double n = static_cast<double>(reduction.reduced.size);
  SwitchFloating(dx.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const HeadTimesSlope<F, ComputeOf<T>> slope{n};
    const Broadcast<T> heads(head.dptr<T>(), kept);
    const Broadcast<T> data(static_cast<const T*>(x), dx.shape);
    if constexpr (F::kSlopeReads == SlopeReads::kNothing) {
      MapBroadcast<T>(device, dx, req, slope, heads);
    } else if constexpr (F::kSlopeReads == SlopeReads::kInput) {
      MapBroadcast<T>(device, dx, req, slope, heads, data);
    } else {
      double* results = scratch + reduction.ScratchBytes() / static_cast<int64_t>(sizeof(double));
      ReduceOver<F>(device, reduction, ArraySource<T>{data.data}, scratch,
                    StoreResult<F, double>{{results, OpReqType::kWriteTo}, n});
      MapBroadcast<T>(device, dx, req, slope, heads, data, Broadcast<double>(results, kept));
    }
  });
}

inline double* ScratchOf(const EnvArguments& env) {
  return static_cast<double*>(env.resource[0].space);
}

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  Reduce<F>(Device{ctx}, src, FlagsOf(src.shape, env.As<ReduceParam>(), F::kName), *ret, req,
            ScratchOf(env));
}
template <typename Device, typename F>
void Gradient(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  SpreadHead<F>(Device{ctx}, head.data, in.data.data,
                FlagsOf(in_grad->shape, env.As<ReduceParam>(), F::kName), *in_grad, req,
                ScratchOf(env));
}
// For sums and means, which need no element.
template <typename Device, typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
                    RunContext ctx) {
  SpreadHead<F>(Device{ctx}, head.data, nullptr,
                FlagsOf(in_grad->shape, env.As<ReduceParam>(), F::kName), *in_grad, req,
                ScratchOf(env));
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachReduction([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kName);
    op.set_function(Device::kType, Forward<Device, F>, kNoInplace);
    if constexpr (F::kSlopeReads == SlopeReads::kNothing) {
      op.set_gradient(Device::kType, GradientOfHead<Device, F>, kNoInplace);
    } else {
      op.set_gradient(Device::kType, Gradient<Device, F>, kNoInplace);
    }
  });
}

}  // namespace mxtrain::reduce

MXTRAIN_KERNELS(reduce, Device, registry) {
  mxtrain::reduce::AddKernels<Device>(registry);
}
