// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/group_norm/group_norm.h"

#include <cmath>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

void CompleteGroupNorm(const GroupNormParam& param, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return;
  if (data.ndim() < 3) {
    Throw(ErrorKind::kConfig,
          "GroupNorm: data has shape {}; expected [N, C, ...] with 3 axes or more",
          data.ToString());
  }
  if (data[1] == TShape::kUnknown) return;
  if (data[1] % param.num_groups != 0) {
    Throw(ErrorKind::kConfig,
          "GroupNorm: {} channels cannot be divided into num_groups = {} groups", data[1],
          param.num_groups);
  }
  for (size_t i = 1; i < in->size(); ++i) {
    TShape& shape = (*in)[i];
    const bool per_channel = shape.known() && shape == TShape{data[1]};
    UnifyShape(per_channel ? TShape{data[1]} : TShape{int64_t{param.num_groups}}, &shape,
               "GroupNorm", i == 1 ? "gamma" : "beta");
  }
}

void LowerGroupNorm(const GroupNormParam& param, Lowering& g) {
  const TShape& data = g.shape(0);
  const int64_t groups = param.num_groups, inner = data[1] / groups * data.Product(2, data.ndim());
  const TShape grouped{data[0], groups, inner};
  const auto x = g.Reshape(g.argument(0), grouped);
  auto y = g("_NormalizeRows", {x}, {{"num_axes", "1"}, {"eps", params::Print(param.eps)}});
  // Scaled in the shape in which an element of gamma has an axis of its own.
  bool is_grouped = true;
  for (const auto& [op, argument] :
       {std::pair("broadcast_mul", 1), std::pair("broadcast_add", 2)}) {
    const bool per_group = g.shape(argument)[0] == groups;
    if (per_group != is_grouped) y = g.Reshape(y, per_group ? grouped : data);
    is_grouped = per_group;
    y = g(op, {y, g.AlongAxis(argument, 1, per_group ? 3 : data.ndim())});
  }
  g.SetOutput(0, is_grouped ? g.Reshape(y, data) : y);

  // sqrt(variance + eps) without squares that overflow 16 bits: the Euclidean norm of what is off
  // the mean, divided by the root of its length, and that of eps.
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(inner, 1)));
  const auto mean = g("mean", {x}, {{"axis", "2"}, {"keepdims", "1"}});
  const auto off = g.WithScalar("_div_scalar", g("broadcast_sub", {x, mean}), root);
  g.SetOutput(1, g.Reshape(mean, {data[0], groups}));
  g.SetOutput(
      2, g.WithScalar("_hypot_scalar", g("norm", {off}, {{"axis", "2"}}), std::sqrt(param.eps)));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(group_norm, registry) {
  using namespace mxtrain;
  AddComposite<GroupNormParam>(
      registry,
      {.name = "GroupNorm",
       .description = "normalizes groups of channels of every sample",
       .arguments = {"data", "gamma", "beta"},
       .outputs = {"output", "mean", "std"},
       .visible = [](const GroupNormParam& param) { return param.output_mean_var ? 3 : 1; },
       .complete = CompleteGroupNorm,
       .lower = LowerGroupNorm});
}
