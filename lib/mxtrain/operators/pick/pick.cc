// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pick/pick.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

// `shape` with length 1 at the axis, or without it; [1] if no axis is left.
TShape Reduced(TShape shape, int axis, bool keep) {
  if (!keep && shape.ndim() > 1) return WithoutAxis(shape, axis);
  shape[axis] = 1;
  return shape;
}

// Throws if there is nothing to pick from.
void CheckLength(const std::string& who, const TShape& data, int axis, const TShape& index) {
  if (data[axis] != 0 || !index.known() || index.Size() == 0) return;
  Throw(ErrorKind::kConfig, "{}: axis {} of {} has no elements; expected at least one", who, axis,
        data.ToString());
}

}  // namespace

bool PickProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                              std::vector<TShape>*) const {
  TShape &data = (*in)[0], &index = (*in)[1], &output = (*out)[0];
  if (!data.has_rank()) return false;
  const int axis = CheckAxis(param_.axis, data, TypeString());
  const bool index_keeps = index.has_rank() ? index.ndim() == data.ndim() : param_.keepdims;
  ExpectShape(Reduced(data, axis, index_keeps), &index, TypeString(), "index");
  ExpectShape(Reduced(data, axis, param_.keepdims), &output, TypeString(), "output");
  // What these know of the other axes.
  const auto tell = [&](const TShape& known) {
    const bool keeps = known.ndim() == data.ndim();
    for (int i = 0; i < data.ndim(); ++i) {
      if (i != axis && data[i] == TShape::kUnknown) data[i] = known[keeps || i < axis ? i : i - 1];
    }
  };
  tell(index);
  tell(output);
  ExpectShape(Reduced(data, axis, index_keeps), &index, TypeString(), "index");
  ExpectShape(Reduced(data, axis, param_.keepdims), &output, TypeString(), "output");
  CheckLength(TypeString(), data, axis, index);
  return data.known();
}

bool BatchTakeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape &a = (*in)[0], &indices = (*in)[1], &output = (*out)[0];
  ExpectShape(TShape::OfRank(2), &a, TypeString(), "a [N, K]");
  ExpectShape(TShape{a[0]}, &indices, TypeString(), "indices [N]");
  ExpectShape(indices, &output, TypeString(), "output [N]");
  ExpectShape(TShape{output[0], TShape::kUnknown}, &a, TypeString(), "a [N, K]");
  indices = output;
  CheckLength(TypeString(), a, 1, indices);
  return a.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(pick, registry) {
  using namespace mxtrain;
  registry.AddProperty("pick", {"choose_element_0index"},
                       [] { return std::make_unique<PickProperty>(); });
  registry.AddProperty("batch_take", {}, [] { return std::make_unique<BatchTakeProperty>(); });
}
