// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/point_loss.h"

#include <limits>

namespace mxtrain {

std::vector<std::string> PointLossArguments(const TShape& strides, int form) {
  std::vector<std::string> names = PointMapNames(strides, form);
  names.push_back("label");
  return names;
}

bool InferPointLossShapes(const TShape& strides, int form, int64_t bins, const std::string& who,
                          std::vector<TShape>* in, std::vector<TShape>* out) {
  TShape &label = in->back(), &output = (*out)[0];
  PointGridShape grid = UnifyPointMaps(strides, who, in, form, bins);
  TShape rows{grid.images, TShape::kUnknown, kObjectColumns};
  UnifyShape(label, &rows, who, "label");
  label = rows;
  UnifyShape(TShape{rows[0]}, &output, who, "output");
  if (grid.images == TShape::kUnknown && output[0] != TShape::kUnknown) {
    (*in)[0][0] = output[0];
    grid = UnifyPointMaps(strides, who, in, form, bins);
    label[0] = output[0];
  }
  return label.known() && grid.points != TShape::kUnknown && grid.classes != TShape::kUnknown;
}

Expected<int64_t, Refusal> CountPoints(const TShape& strides, const PlanRequest& request) {
  int64_t points = 0;
  for (int l = 0; l < strides.ndim(); ++l) {
    const TShape& map = request.in[static_cast<size_t>(l)].shape;
    points += map[2] * map[3];
  }
  if (points > std::numeric_limits<int32_t>::max())
    return Refusal{format("it takes at most {} points", std::numeric_limits<int32_t>::max())};
  return points;
}

}  // namespace mxtrain
