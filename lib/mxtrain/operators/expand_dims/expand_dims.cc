// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/expand_dims/expand_dims.h"

#include <vector>

#include "mxtrain/operator/axes.h"

namespace mxtrain {

bool ExpandDimsProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  TShape &data = (*in)[0], &expanded = (*out)[0];
  if (!data.has_rank()) {
    if (!expanded.has_rank() || expanded.ndim() == 0) return false;
    data = TShape::OfRank(expanded.ndim() - 1);
  }
  const int axis = CheckAxis(param_.axis, WithAxis(data, data.ndim(), 1), TypeString());
  UnifyShape(WithAxis(data, axis, 1), &expanded, TypeString(), "output");
  for (int i = 0; i < data.ndim(); ++i) data[i] = expanded[i < axis ? i : i + 1];
  return data.known();
}

bool SqueezeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  const TShape& data = (*in)[0];
  if (!data.known()) return false;
  std::vector<bool> dropped(static_cast<size_t>(data.ndim()));
  for (int i = 0; i < data.ndim() && !param_.axis; ++i)
    dropped[static_cast<size_t>(i)] = data[i] == 1;
  for (int i = 0; param_.axis && i < param_.axis->ndim(); ++i) {
    const int axis = CheckAxis((*param_.axis)[i], data, TypeString());
    if (data[axis] != 1) {
      Throw(ErrorKind::kConfig, "squeeze: axis {} of shape {} does not have length 1",
            (*param_.axis)[i], data.ToString());
    }
    dropped[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < data.ndim(); ++i) {
    if (!dropped[static_cast<size_t>(i)]) dims.push_back(data[i]);
  }
  if (dims.empty()) dims.push_back(1);
  UnifyShape(TShape(dims), &(*out)[0], TypeString(), "output");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(expand_dims, registry) {
  registry.AddProperty("expand_dims", {},
                       [] { return std::make_unique<mxtrain::ExpandDimsProperty>(); });
  registry.AddProperty("squeeze", {}, [] { return std::make_unique<mxtrain::SqueezeProperty>(); });
}
