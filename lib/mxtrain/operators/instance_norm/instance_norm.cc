// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/instance_norm/instance_norm.h"

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

void CompleteInstanceNorm(const InstanceNormParam&, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return;
  if (data.ndim() < 3) {
    Throw(ErrorKind::kConfig,
          "InstanceNorm: data has shape {}; expected [N, C, ...] with 3 axes or more",
          data.ToString());
  }
  for (size_t i = 1; i < in->size(); ++i)
    UnifyShape(TShape{data[1]}, &(*in)[i], "InstanceNorm", i == 1 ? "gamma" : "beta");
}

void LowerInstanceNorm(const InstanceNormParam& param, Lowering& g) {
  const int ndim = g.shape(0).ndim();
  const auto normal = g("_NormalizeRows", {g.argument(0)},
                        {{"num_axes", params::Print(ndim - 2)}, {"eps", params::Print(param.eps)}});
  const auto scaled = g("broadcast_mul", {normal, g.AlongAxis(1, 1, ndim)});
  g.SetOutput(0, g("broadcast_add", {scaled, g.AlongAxis(2, 1, ndim)}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(instance_norm, registry) {
  using namespace mxtrain;
  AddComposite<InstanceNormParam>(
      registry, {.name = "InstanceNorm",
                 .description = "normalizes every channel of every sample over its places",
                 .arguments = {"data", "gamma", "beta"},
                 .complete = CompleteInstanceNorm,
                 .lower = LowerInstanceNorm});
}
