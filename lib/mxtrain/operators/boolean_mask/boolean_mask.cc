// SPDX-License-Identifier: Apache-2.0
// boolean_mask: the rows of the data (indices of axis 0) where index is not 0, in their order. How
// many there are depends on numbers, and shapes are known before those; so `size` says how many
// rows the result has. Where fewer are chosen its last rows are 0; further ones are dropped. The
// index has no gradient.
#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct BooleanMaskParam : Parameter<BooleanMaskParam> {
  int axis;
  int64_t size;
  static void Declare(Fields<BooleanMaskParam>& f) {
    f.Add("size", &BooleanMaskParam::size)
        .Required()
        .Range(1)
        .Help(
            "rows of the result, a number that does not depend on the index as MXNet's does: the "
            "first chosen ones, then zeros");
    f.Add("axis", &BooleanMaskParam::axis).Default(0).Range(0, 0).Help("the axis of the rows");
  }
};

void CompleteBooleanMask(const BooleanMaskParam& param, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return;
  if (data.ndim() == 0) Throw(ErrorKind::kConfig, "boolean_mask: the data have no axis");
  UnifyShape({data[0]}, &(*in)[1], "boolean_mask", "index");
  if (data[0] != TShape::kUnknown && data[0] < param.size) {
    Throw(ErrorKind::kConfig, "boolean_mask: size = {}, but data of shape {} have {} rows",
          param.size, data.ToString(), data[0]);
  }
}

void LowerBooleanMask(const BooleanMaskParam& param, Lowering& g) {
  const auto chosen = g.WithScalar("_not_equal_scalar", g("BlockGrad", {g.argument(1)}), 0);
  // Those that are chosen first; of equal elements the first one comes first.
  const auto order =
      g("topk", {chosen}, {{"k", params::Print(param.size)}, {"axis", "0"}, {"dtype", "int64"}});
  const auto rows = g("take", {g.argument(0), order}), kept = g("take", {chosen, order});
  g.SetOutput(0, g("where", {kept, rows, g("zeros_like", {rows})}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(boolean_mask, registry) {
  using namespace mxtrain;
  AddComposite<BooleanMaskParam>(
      registry, {.name = "boolean_mask",
                 .description = "the rows where an index is not 0, up to a number, then zeros",
                 .aliases = {"_contrib_boolean_mask"},
                 .arguments = {"data", "index"},
                 .complete = CompleteBooleanMask,
                 .lower = LowerBooleanMask});
}
