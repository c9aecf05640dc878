// SPDX-License-Identifier: Apache-2.0
// Parts of nets that drop or select whole samples:
//   DropPath       stochastic depth (Huang et al. 2016, arXiv 1603.09382): in training a sample is
//                  0 with probability p, else multiplied by 1 / (1 - p)
//   element_mask   the samples of lhs times the numbers of rhs [N], which have no gradient
#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct DropPathParam : Parameter<DropPathParam> {
  double p;
  static void Declare(Fields<DropPathParam>& f) {
    f.Add("p", &DropPathParam::p)
        .RangeBelow(0, 1)
        .Default(0)
        .Help("fraction of the samples that are dropped in training");
  }
};

void LowerDropPath(const DropPathParam& param, Lowering& g) {
  std::vector<int64_t> axes;
  for (int i = 1; i < g.shape(0).ndim(); ++i) axes.push_back(i);
  g.SetOutput(0, g("Dropout", {g.argument(0)},
                   {{"p", params::Print(param.p)}, {"axes", TShape(axes).ToTuple()}}));
}

void CompleteMask(const NoParam&, std::vector<TShape>* in) {
  const TShape& lhs = (*in)[0];
  if (!lhs.has_rank()) return;
  if (lhs.ndim() == 0) Throw(ErrorKind::kConfig, "element_mask: lhs has no axis");
  UnifyShape({lhs[0]}, &(*in)[1], "element_mask", "rhs");
}

void LowerMask(const NoParam&, Lowering& g) {
  const TShape& lhs = g.shape(0);
  TShape column = lhs;
  for (int i = 1; i < lhs.ndim(); ++i) column[i] = 1;
  const auto mask = g.Reshape(g("BlockGrad", {g.argument(1)}), column);
  g.SetOutput(0, g("broadcast_mul", {g.argument(0), mask}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(drop_path, registry) {
  using namespace mxtrain;
  AddComposite<DropPathParam>(
      registry, {.name = "DropPath",
                 .description = "drops whole samples at random in training (stochastic depth)",
                 .lower = LowerDropPath});
  AddComposite<NoParam>(registry, {.name = "element_mask",
                                   .description = "multiplies every sample by a number",
                                   .arguments = {"lhs", "rhs"},
                                   .complete = CompleteMask,
                                   .lower = LowerMask});
}
