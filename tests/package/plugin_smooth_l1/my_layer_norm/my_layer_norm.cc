// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/composite.h"

using namespace mxtrain;

static void Complete(const NoParam&, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  if (data.ndim() < 1) return;
  for (size_t i : {1, 2}) UnifyShape({data[data.ndim() - 1]}, &(*in)[i], "my_layer_norm", "gamma");
}
static void Lower(const NoParam&, Lowering& g) {
  const Kwargs last = {{"axis", "-1"}, {"keepdims", "1"}};
  const int ndim = g.shape(0).ndim(), row = ndim - 1;
  const auto x = g("broadcast_sub", {g.argument(0), g("mean", {g.argument(0)}, last)});
  const auto variance = g.WithScalar("_plus_scalar", g("mean", {g("square", {x})}, last), 1e-5);
  const auto y = g("broadcast_mul", {x, g("rsqrt", {variance})});
  const auto scaled = g("broadcast_mul", {y, g.AlongAxis(1, row, ndim)});
  g.SetOutput(0, g("broadcast_add", {scaled, g.AlongAxis(2, row, ndim)}));
}
MXTRAIN_OPERATOR(my_layer_norm, registry) {
  AddComposite<NoParam>(registry, {.name = "my_layer_norm",
                                   .description = "normalizes over the last axis",
                                   .arguments = {"data", "gamma", "beta"},
                                   .complete = Complete,
                                   .lower = Lower});
}
