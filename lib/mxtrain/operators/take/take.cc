// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/take/take.h"

#include <algorithm>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool TakeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                              std::vector<TShape>*) const {
  TShape &a = (*in)[0], &indices = (*in)[1], &output = (*out)[0];
  if (a.has_rank() && output.has_rank() && !indices.has_rank() && output.ndim() >= a.ndim() - 1)
    indices = TShape::OfRank(output.ndim() - a.ndim() + 1);
  if (!a.has_rank() || !indices.has_rank()) return false;
  const int axis = CheckAxis(param_.axis, a, TypeString()), count = indices.ndim(),
            rank = a.ndim() - 1 + count;
  if (rank > TShape::kMaxDims) {
    Throw(ErrorKind::kConfig,
          "take: a {} and indices {} give an output of {} axes; at most {} are supported",
          a.ToString(), indices.ToString(), rank, TShape::kMaxDims);
  }
  if (a[axis] == 0 && indices.known() && indices.Size() > 0) {
    Throw(ErrorKind::kConfig, "take: axis {} of {} has no elements, but indices has shape {}",
          param_.axis, a.ToString(), indices.ToString());
  }
  TShape taken = TShape::OfRank(rank);
  std::copy_n(a.begin(), axis, &taken[0]);
  std::copy_n(indices.begin(), count, &taken[0] + axis);
  std::copy(a.begin() + axis + 1, a.end(), &taken[0] + axis + count);
  ExpectShape(taken, &output, TypeString(), "output");
  std::copy_n(output.begin(), axis, &a[0]);
  std::copy_n(output.begin() + axis, count, &indices[0]);
  std::copy(output.begin() + axis + count, output.end(), &a[0] + axis + 1);
  return a.known() && indices.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(take, registry) {
  registry.AddProperty("take", {}, [] { return std::make_unique<mxtrain::TakeProperty>(); });
}
