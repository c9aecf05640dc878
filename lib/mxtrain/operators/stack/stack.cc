// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/stack/stack.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"

namespace mxtrain {

std::vector<std::string> StackProperty::ListArguments() const {
  return NumberedNames("arg", param_.num_args);
}

int StackProperty::Axis(int ndim) const {
  return CheckAxis(param_.axis, ndim, TypeString(), "axis", "an output");
}

bool StackProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                               std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments();
  TShape& whole = (*out)[0];
  TShape one;  // the shape of every input
  for (size_t i = 0; i < in->size(); ++i) UnifyShape((*in)[i], &one, TypeString(), names[i]);
  if (!one.has_rank()) {
    if (!whole.has_rank() || whole.ndim() == 0) return false;
    one = TShape::OfRank(whole.ndim() - 1);
  }
  const int axis = Axis(one.ndim() + 1);
  UnifyShape(WithAxis(one, axis, param_.num_args), &whole, TypeString(), "output");
  one = WithoutAxis(whole, axis);
  for (TShape& shape : *in) shape = one;
  return one.known();
}

MoveList StackProperty::MovesOf(std::span<const TensorSpec> in,
                                std::span<const TensorSpec> out) const {
  const AxisView whole(out[0].shape, Axis(out[0].shape.ndim()));
  MoveList list;
  for (int i = 0; i < static_cast<int>(in.size()); ++i)
    list.Add(i, whole.Piece(1), 0, whole.Columns(i, 1));
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(stack, registry) {
  registry.AddProperty("stack", {}, [] { return std::make_unique<mxtrain::StackProperty>(); });
}
