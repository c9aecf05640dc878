// argmax and argmin: where along an axis the largest or smallest element lies, the first of equals, in the type of the data. Without an
// axis the array counts as one row. argmax_channel: argmax along axis 1 of [N, K, ...]. The gradient is zero.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::argmax {
namespace {

struct ArgParam : Parameter<ArgParam> {
  std::optional<int> axis;
  bool keepdims = false;
  static void Declare(Fields<ArgParam>& f) {
    f.Add("axis", &ArgParam::axis).Default(std::nullopt).Help("axis that is searched, negative from the end; None: the whole array");
    f.Add("keepdims", &ArgParam::keepdims).Default(false).Help("the searched axis stays, with length 1");
  }
};

struct Largest {
  static constexpr const char* kName = "argmax";
  static bool Better(double x, double best) { return x > best; }
};
struct Smallest {
  static constexpr const char* kName = "argmin";
  static bool Better(double x, double best) { return x < best; }
};

TShape Without(const TShape& src, const ArgParam& param, const char* who) {
  std::vector<int64_t> dims(src.begin(), src.end());
  if (!param.axis) {
    dims.assign(param.keepdims ? dims.size() : 1, 1);
  } else if (const int axis = CheckAxis(*param.axis, src, who); param.keepdims) {
    dims[static_cast<size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  if (dims.empty()) dims.push_back(1);
  return TShape(dims);
}

ArgParam ChannelParam() {
  ArgParam param;
  param.axis = 1;
  return param;
}

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return Without(src, env.As<ArgParam>(), F::kName);
}
TShape ChannelShape(const TShape& src, const EnvArguments&) {
  return Without(src, ChannelParam(), "argmax_channel");
}

// A NaN wins, so that it is not overlooked.
template <typename F, typename T>
int64_t Find(const T* x, int64_t length, int64_t stride) {
  int64_t best = 0;
  for (int64_t k = 0; k < length; ++k) {
    const double value = static_cast<double>(x[k * stride]), so_far = static_cast<double>(x[best * stride]);
    if (std::isnan(so_far)) break;
    if (F::Better(value, so_far) || std::isnan(value)) best = k;
  }
  return best;
}

template <typename F>
void Search(const TBlob& src, const ArgParam& param, const TBlob& ret, OpReqType req) {
  AxisView view;
  if (param.axis) {
    view = AxisView(src.shape, CheckAxis(*param.axis, src.shape, F::kName));
  } else {
    view.outer = view.inner = 1;
    view.length = src.shape.Size();
  }
  if (req == OpReqType::kNullOp || view.length == 0) return;
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ParallelFor(view.outer * view.inner, std::max<int64_t>(1, kParallelGrain / view.length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* first = src.dptr<T>() + i / view.inner * view.length * view.inner + i % view.inner;
        Assign(req, ret.dptr<T>(), i, static_cast<ComputeOf<T>>(Find<F>(first, view.length, view.inner)));
      }
    });
  });
}

template <typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  Search<F>(src, env.As<ArgParam>(), *ret, req);
}
void ForwardChannel(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext) {
  Search<Largest>(src, ChannelParam(), *ret, req);
}

void ZeroGradient(const OutputGrad&, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext) {
  if (req == OpReqType::kNullOp || req == OpReqType::kAddTo || in_grad->Size() == 0) return;
  std::memset(in_grad->data, 0, static_cast<size_t>(in_grad->Size() * SizeOf(in_grad->type)));
}

SimpleOp Add(OperatorRegistry& registry, const char* name, UnaryFunction function, UnaryShapeFunction shape) {
  SimpleOp op(registry, name);
  op.set_function(DeviceType::kCPU, function, kNoInplace)
      .set_gradient(DeviceType::kCPU, ZeroGradient, kNoInplace)
      .set_shape_function(shape)
      .set_types(kFloatingTypes);
  return op;
}

}  // namespace

MXTRAIN_OPERATOR(argmax_cpu, registry) {
  Add(registry, "argmax", Forward<Largest>, Shape<Largest>)
      .set_kwargs_struct<ArgParam>()
      .describe("where along an axis the largest element lies");
  Add(registry, "argmin", Forward<Smallest>, Shape<Smallest>)
      .set_kwargs_struct<ArgParam>()
      .describe("where along an axis the smallest element lies");
  Add(registry, "argmax_channel", ForwardChannel, ChannelShape).describe("where along axis 1 the largest element lies");
}

}  // namespace mxtrain::argmax
