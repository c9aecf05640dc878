#include <algorithm>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::broadcast_binary {
namespace {

using elemwise_binary::Slopes;

// Some axes of the output, with what one step along each adds to an offset in the output, in one operand and in the other.
struct Axes {
  struct Offsets {
    int64_t out = 0, own = 0, other = 0;
  };
  int ndim = 0;
  int64_t size = 1;
  int64_t dim[TShape::kMaxDims] = {};
  Offsets stride[TShape::kMaxDims];

  void Add(int64_t length, Offsets step) {
    dim[ndim] = length;
    stride[ndim++] = step;
    size *= length;
  }
  Offsets At(int64_t index) const {
    Offsets at;
    for (int i = ndim - 1; i >= 0; --i) {
      const int64_t k = index % dim[i];
      index /= dim[i];
      at.out += k * stride[i].out;
      at.own += k * stride[i].own;
      at.other += k * stride[i].other;
    }
    return at;
  }
};

// What one step along axis i of the output adds in an operand: nothing where it is repeated.
int64_t StrideIn(const TShape& operand, const TShape& out, int i) {
  return operand[i] != out[i] ? 0 : operand.Product(i + 1, operand.ndim());
}

template <typename F>
void Forward(const TBlob& lhs, const TBlob& rhs, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  Axes all;
  for (int i = 0; i < ret->shape.ndim(); ++i) {
    all.Add(ret->shape[i], {0, StrideIn(lhs.shape, ret->shape, i), StrideIn(rhs.shape, ret->shape, i)});
  }
  SwitchFloating(ret->type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const T *a = lhs.dptr<T>(), *b = rhs.dptr<T>();
    Map<T>(ctx, *ret, req, [=](int64_t i) {
      const Axes::Offsets at = all.At(i);
      return F::Value(static_cast<C>(a[at.own]), static_cast<C>(b[at.other]));
    });
  });
}

// An operand's own axes, and those along which it is repeated.
struct Split {
  Axes own, repeated;
};
Split SplitAxes(const TShape& out, const TShape& operand, const TShape& other) {
  Split split;
  for (int i = 0; i < out.ndim(); ++i) {
    Axes& axes = operand[i] != out[i] ? split.repeated : split.own;
    axes.Add(out[i], {out.Product(i + 1, out.ndim()), StrideIn(operand, out, i), StrideIn(other, out, i)});
  }
  return split;
}

// own_grad = the sum of slope(own, other) * head over the repeated axes, in double. Without values (null) the slope is constant.
template <typename T, typename Slope>
void GradientOf(const TBlob& head, const TShape& other, const T* own_values, const T* other_values, const TBlob& own_grad, OpReqType req,
                const Slope& slope) {
  if (req == OpReqType::kNullOp) return;
  const Split split = SplitAxes(head.shape, own_grad.shape, other);
  const T* g = head.dptr<T>();
  T* out = own_grad.dptr<T>();
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, split.repeated.size));
  ParallelFor(split.own.size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Axes::Offsets base = split.own.At(i);
      double sum = 0;
      for (int64_t k = 0; k < split.repeated.size; ++k) {
        const Axes::Offsets step = split.repeated.At(k);
        const double own = own_values ? static_cast<double>(own_values[base.own]) : 0;
        const double met = other_values ? static_cast<double>(other_values[base.other + step.other]) : 0;
        const double factor = slope(own, met);
        if (factor != 0) sum += factor * static_cast<double>(g[base.out + step.out]);
      }
      Assign(req, out, i, static_cast<ComputeOf<T>>(sum));
    }
  });
}

template <typename F>
void Backward(const TBlob& head, const void* lhs, const void* rhs, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs) {
  SwitchFloating(head.type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a = static_cast<const T*>(lhs), *b = static_cast<const T*>(rhs);
    GradientOf<T>(head, lhs_grad->shape, b, a, *rhs_grad, req_rhs, [](double own, double other) { return F::Right(other, own); });
    GradientOf<T>(head, rhs_grad->shape, a, b, *lhs_grad, req_lhs, [](double own, double other) { return F::Left(own, other); });
  });
}
template <typename F>
void GradientOfInputs(const OutputGrad& head, const Input0& lhs, const Input1& rhs, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad,
                      OpReqType req_lhs, OpReqType req_rhs, RunContext) {
  Backward<F>(head.data, lhs.data.data, rhs.data.data, lhs_grad, rhs_grad, req_lhs, req_rhs);
}
template <typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs,
                    RunContext) {
  Backward<F>(head.data, nullptr, nullptr, lhs_grad, rhs_grad, req_lhs, req_rhs);
}

}  // namespace

MXTRAIN_OPERATOR(broadcast_binary_cpu, registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kBroadcastName);
    op.set_function(DeviceType::kCPU, Forward<F>, kInplaceLhsOut).set_types(kFloatingTypes);
    if constexpr (F::kSlopes == Slopes::kInputs) {
      op.set_gradient(DeviceType::kCPU, GradientOfInputs<F>, kNoInplace);
    } else {
      op.set_gradient(DeviceType::kCPU, GradientOfHead<F>, kNoInplace);
    }
  });
}

}  // namespace mxtrain::broadcast_binary
