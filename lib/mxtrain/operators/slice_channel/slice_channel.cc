// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice_channel/slice_channel.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"

namespace mxtrain {

std::vector<std::string> SliceChannelProperty::ListOutputs() const {
  return NumberedNames("output", param_.num_outputs);
}

int SliceChannelProperty::Axis(int ndim) const {
  return CheckAxis(param_.axis, ndim, TypeString(), "axis", "data");
}

bool SliceChannelProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape part;  // with the axis
  for (TShape shape : *out) {
    if (!shape.has_rank()) continue;
    if (param_.squeeze_axis) shape = WithAxis(shape, Axis(shape.ndim() + 1), 1);
    UnifyShape(shape, &part, TypeString(), "output");
  }
  if (part.has_rank()) {
    TShape whole = part;
    const int axis = Axis(whole.ndim());
    whole[axis] = TShape{whole[axis], param_.num_outputs}.Size();
    UnifyShape(data, &whole, TypeString(), "data");
    data = whole;
  }
  if (!data.has_rank()) return false;
  const int axis = Axis(data.ndim());
  part = data;
  if (data[axis] != TShape::kUnknown) {
    if (data[axis] % param_.num_outputs != 0) {
      Throw(ErrorKind::kConfig,
            "SliceChannel: axis {} of data of shape {} cannot be split into {} equal parts", axis,
            data.ToString(), param_.num_outputs);
    }
    part[axis] /= param_.num_outputs;
  }
  if (param_.squeeze_axis) {
    if (part[axis] != TShape::kUnknown && part[axis] != 1) {
      Throw(ErrorKind::kConfig,
            "SliceChannel: squeeze_axis removes axis {} of data of shape {}, whose length must be "
            "num_outputs = {}",
            axis, data.ToString(), param_.num_outputs);
    }
    part = WithoutAxis(part, axis);
  }
  for (TShape& shape : *out) UnifyShape(part, &shape, TypeString(), "output");
  return data.known();
}

MoveList SliceChannelProperty::MovesOf(std::span<const TensorSpec> in,
                                       std::span<const TensorSpec> out) const {
  const AxisView whole(in[0].shape, Axis(in[0].shape.ndim()), in[0].layout);
  const int64_t length = whole.length / param_.num_outputs;
  MoveList list;
  for (int i = 0; i < static_cast<int>(out.size()); ++i)
    list.Add(0, whole.Columns(i * length, length), i, whole.Piece(length));
  return list;
}

Layout SliceChannelProperty::LayoutFor(const PlanRequest& request) const {
  const TShape& whole = request.in[0].shape;
  // All outputs have one shape.
  return CommonLayout(request.in_layout, whole, Axis(whole.ndim()), {&request.out[0].shape, 1});
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(slice_channel, registry) {
  registry.AddProperty("SliceChannel", {"split"},
                       [] { return std::make_unique<mxtrain::SliceChannelProperty>(); });
}
