// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/gather_nd/gather_nd.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

// Infers `points`, the array with an element or sub-array of `space` for each point. Returns
// whether all is known.
bool InferPoints(const std::string& who, TShape* space, TShape* indices, TShape* points,
                 const std::string& points_name) {
  if (!space->has_rank() || !indices->has_rank()) return false;
  if (indices->ndim() < 2) {
    Throw(ErrorKind::kConfig, "{}: indices has shape {}; expected [axes, points...]", who,
          indices->ToString());
  }
  if ((*indices)[0] == TShape::kUnknown) return false;
  const int64_t axes = (*indices)[0];
  if (axes < 1 || axes > space->ndim()) {
    Throw(ErrorKind::kConfig,
          "{}: indices has shape {}, so a point has {} coordinates, but the array has shape {}; "
          "expected 1 .. {}",
          who, indices->ToString(), axes, space->ToString(), space->ndim());
  }
  const int given = static_cast<int>(axes), listed = indices->ndim() - 1,
            rank = listed + space->ndim() - given;
  if (rank > TShape::kMaxDims) {
    Throw(ErrorKind::kConfig, "{}: points {} of an array {} make {} axes; at most {} are supported",
          who, indices->ToString(), space->ToString(), rank, TShape::kMaxDims);
  }
  TShape wanted = TShape::OfRank(rank);
  std::copy(indices->begin() + 1, indices->end(), &wanted[0]);
  std::copy(space->begin() + given, space->end(), &wanted[0] + listed);
  ExpectShape(wanted, points, who, points_name);
  std::copy_n(points->begin(), listed, &(*indices)[0] + 1);
  std::copy(points->begin() + listed, points->end(), &(*space)[0] + given);
  if (!space->known() || !indices->known()) return false;
  if (space->Product(0, given) == 0 && indices->Product(1, indices->ndim()) > 0) {
    Throw(ErrorKind::kConfig, "{}: the array has shape {}, which has no elements at points", who,
          space->ToString());
  }
  return true;
}

}  // namespace

bool GatherNdProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                  std::vector<TShape>*) const {
  return InferPoints(TypeString(), &(*in)[0], &(*in)[1], &(*out)[0], "output");
}

void ScatterNdProperty::Check() {
  if (param_.shape.ndim() < 1) {
    Throw(ErrorKind::kConfig, "scatter_nd: shape = {}: expected at least one axis",
          param_.shape.ToTuple());
  }
  for (const int64_t length : param_.shape) {
    if (length >= 0) continue;
    Throw(ErrorKind::kConfig, "scatter_nd: shape = {}: expected lengths of 0 or more",
          param_.shape.ToTuple());
  }
}

bool ScatterNdProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape space = param_.shape;
  ExpectShape(space, &(*out)[0], TypeString(), "output");
  return InferPoints(TypeString(), &space, &(*in)[1], &(*in)[0], "data") && (*in)[0].known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(gather_nd, registry) {
  using namespace mxtrain;
  registry.AddProperty("gather_nd", {}, [] { return std::make_unique<GatherNdProperty>(); });
  registry.AddProperty("scatter_nd", {}, [] { return std::make_unique<ScatterNdProperty>(); });
}
