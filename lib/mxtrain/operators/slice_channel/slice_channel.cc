// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice_channel/slice_channel.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

std::vector<std::string> SliceChannelProperty::ListOutputs() const {
  std::vector<std::string> names;
  for (int i = 0; i < param_.num_outputs; ++i) names.push_back(format("output{}", i));
  return names;
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
    if (param_.squeeze_axis) {
      const int axis = Axis(shape.ndim() + 1);
      TShape wider = TShape::OfRank(shape.ndim() + 1);
      for (int i = 0; i < wider.ndim(); ++i) wider[i] = i == axis ? 1 : shape[i < axis ? i : i - 1];
      shape = wider;
    }
    UnifyShape(shape, &part, TypeString(), "output");
  }
  if (part.has_rank()) {
    TShape whole = part;
    const int axis = Axis(whole.ndim());
    whole[axis] = TShape{whole[axis], param_.num_outputs}.Size();
    UnifyShape(whole, &data, TypeString(), "data");
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
    TShape narrow = TShape::OfRank(part.ndim() - 1);
    for (int i = 0; i < narrow.ndim(); ++i) narrow[i] = part[i < axis ? i : i + 1];
    part = narrow;
  }
  for (TShape& shape : *out) UnifyShape(part, &shape, TypeString(), "output");
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(slice_channel, registry) {
  registry.AddProperty("SliceChannel", {"split"},
                       [] { return std::make_unique<mxtrain::SliceChannelProperty>(); });
}
