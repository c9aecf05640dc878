// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the losses of detectors without anchors (point_grid.h) share. Their arguments are the maps,
// then the label (labelled_objects.h). The output is [N].
#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/point_grid.h"

namespace mxtrain {

// The names of those arguments.
MXTRAIN_API std::vector<std::string> PointLossArguments(const TShape& strides, int form);
// As InferShape and InferType of a property. Labels of narrow maps are float32: a narrow type does
// not hold the pixels of a large image.
MXTRAIN_API bool InferPointLossShapes(const TShape& strides, int form, const std::string& who,
                                      std::vector<TShape>* in, std::vector<TShape>* out);
MXTRAIN_API bool InferPointLossTypes(const std::vector<std::string>& names, const std::string& who,
                                     std::vector<DType>* in, std::vector<DType>* out);

// --- for kernels ---

// Points of no object that are in one that nothing is to be learnt of. `object`: of each point of
// the image.
template <typename T>
MXTRAIN_HD void IgnoreInside(const PointMaps<T>& maps, const LabelledObjects<T>& labels,
                             int64_t image, int32_t* object) {
  for (int64_t m = 0; m < labels.most; ++m) {
    typename LabelledObjects<T>::Object ignored;
    if (!labels.Get(image, m, &ignored) || ignored.learnt) continue;
    for (int64_t p = 0; p < maps.points; ++p) {
      const auto at = maps.PlaceOf(p);
      const bool inside = at.x >= ignored.box.left && at.x <= ignored.box.right &&
                          at.y >= ignored.box.top && at.y <= ignored.box.bottom;
      if (inside && object[p] == kBackground) object[p] = kNothingLearnt;
    }
  }
}

// How many points the maps of this plan have; refuses more than int32_t holds.
MXTRAIN_API Expected<int64_t, Refusal> CountPoints(const TShape& strides,
                                                   const PlanRequest& request);

}  // namespace mxtrain
