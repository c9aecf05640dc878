// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/concat/concat.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"

namespace mxtrain {

std::vector<std::string> ConcatProperty::ListArguments() const {
  return NumberedNames("arg", param_.num_args);
}

int ConcatProperty::Axis(int ndim) const {
  return CheckAxis(param_.dim, ndim, TypeString(), "dim", "inputs");
}

bool ConcatProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments();
  TShape& whole = (*out)[0];
  int ndim = whole.ndim();
  const TShape* first = nullptr;
  for (size_t i = 0; i < in->size(); ++i) {
    const TShape& shape = (*in)[i];
    if (!shape.has_rank()) continue;
    if (first && shape.ndim() != first->ndim()) {
      Throw(ErrorKind::kConfig,
            "Concat: {} has shape {}, but an input before it has {}; all must "
            "have equally many axes",
            names[i], shape.ToString(), first->ToString());
    }
    if (!first) first = &shape;
    ndim = shape.ndim();
  }
  if (ndim < 0) return false;
  const int axis = Axis(ndim);

  // The common part of all shapes: every dimension but one.
  const auto without_axis = [axis](TShape shape) {
    if (shape.ndim() > axis) shape[axis] = TShape::kUnknown;
    return shape;
  };
  TShape common = TShape::OfRank(ndim);
  for (size_t i = 0; i < in->size(); ++i)
    UnifyShape(without_axis((*in)[i]), &common, TypeString(), names[i]);
  UnifyShape(without_axis(whole), &common, TypeString(), "output");
  for (TShape& shape : *in) UnifyShape(common, &shape, TypeString(), "input");
  UnifyShape(common, &whole, TypeString(), "output");

  // One unknown length along the axis follows from the others.
  int64_t sum = 0;
  int unknown = 0;
  TShape* which = nullptr;
  for (TShape& shape : *in) {
    if (shape[axis] == TShape::kUnknown) {
      ++unknown;
      which = &shape;
    } else {
      sum += shape[axis];
    }
  }
  if (unknown == 1 && whole[axis] != TShape::kUnknown) {
    if (whole[axis] < sum) {
      Throw(ErrorKind::kConfig,
            "Concat: output has length {} along axis {}, but the known inputs sum to {}",
            whole[axis], axis, sum);
    }
    (*which)[axis] = whole[axis] - sum;
    unknown = 0;
    sum = whole[axis];
  }
  if (unknown == 0) {
    TShape total = common;
    total[axis] = sum;
    UnifyShape(total, &whole, TypeString(), "output");
  }
  return unknown == 0 && whole.known();
}

MoveList ConcatProperty::MovesOf(std::span<const TensorSpec> in,
                                 std::span<const TensorSpec> out) const {
  const int axis = Axis(out[0].shape.ndim());
  const AxisView whole(out[0].shape, axis, out[0].layout);
  MoveList list;
  int64_t begin = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t length = in[i].shape[axis];
    list.Add(static_cast<int>(i), whole.Piece(length), 0, whole.Columns(begin, length));
    begin += length;
  }
  return list;
}

Layout ConcatProperty::LayoutFor(const PlanRequest& request) const {
  const TShape& whole = request.out[0].shape;
  return CommonLayout(request.in_layout, whole, Axis(whole.ndim()), ShapesOf(request.in));
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(concat, registry) {
  registry.AddProperty("Concat", {"concat"},
                       [] { return std::make_unique<mxtrain::ConcatProperty>(); });
}
