// SPDX-License-Identifier: Apache-2.0
// moments: mean and (biased) variance over axes; logsumexp: the logarithm of the sum of
// exponentials over axes, computed relative to the largest element.
#include <optional>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct MomentsParam : Parameter<MomentsParam> {
  std::optional<TShape> axes;
  bool keepdims;
  static void Declare(Fields<MomentsParam>& f) {
    f.Add("axes", &MomentsParam::axes)
        .Default(std::nullopt)
        .Help("axes to average over, negative from the end; None: all");
    f.Add("keepdims", &MomentsParam::keepdims)
        .Default(false)
        .Help("keep reduced axes with length 1");
  }
};

struct LogSumExpParam : Parameter<LogSumExpParam> {
  std::optional<TShape> axis;
  bool keepdims;
  static void Declare(Fields<LogSumExpParam>& f) {
    f.Add("axis", &LogSumExpParam::axis)
        .Default(std::nullopt)
        .Help("axes to sum over, negative from the end; None: all");
    f.Add("keepdims", &LogSumExpParam::keepdims)
        .Default(false)
        .Help("keep reduced axes with length 1");
  }
};

Kwargs Over(const std::optional<TShape>& axes, bool keepdims) {
  return {{"axis", axes ? axes->ToTuple() : "None"}, {"keepdims", params::Print(keepdims)}};
}

void LowerMoments(const MomentsParam& param, Lowering& g) {
  const auto x = g.argument(0);
  const auto distance = g("broadcast_sub", {x, g("mean", {x}, Over(param.axes, true))});
  g.SetOutput(0, g("mean", {x}, Over(param.axes, param.keepdims)));
  g.SetOutput(1, g("mean", {g("square", {distance})}, Over(param.axes, param.keepdims)));
}

void LowerLogSumExp(const LogSumExpParam& param, Lowering& g) {
  // In place of infinite maxima 0: infinity less infinity would be NaN.
  const auto x = g.argument(0), still = g("BlockGrad", {x});
  const auto largest = [&](bool keepdims) {
    const auto most = g("max", {still}, Over(param.axis, keepdims));
    const auto is_finite = g.WithScalar("_equal_scalar", g("elemwise_sub", {most, most}), 0);
    return g("where", {is_finite, most, g("zeros_like", {most})});
  };
  const auto terms = g("exp", {g("broadcast_sub", {x, largest(true)})});
  const auto sum = g("sum", {terms}, Over(param.axis, param.keepdims));
  g.SetOutput(0, g("elemwise_add", {g("log", {sum}), largest(param.keepdims)}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(moments, registry) {
  using namespace mxtrain;
  AddComposite<MomentsParam>(registry, {.name = "moments",
                                        .description = "mean and variance over axes",
                                        .outputs = {"mean", "var"},
                                        .lower = LowerMoments});
  AddComposite<LogSumExpParam>(registry,
                               {.name = "logsumexp",
                                .description = "the logarithm of the sum of exponentials over axes",
                                .lower = LowerLogSumExp});
}
