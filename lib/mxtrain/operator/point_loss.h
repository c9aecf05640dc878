// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the losses of detectors without anchors (point_grid.h) share. Their arguments are the maps,
// then label [N, objects, 6] with rows of class, left, top, right, bottom in pixels of the image as
// the net reads it, and 0, or 1 for an object that nothing is to be learnt of; rows with a negative
// class are no objects. The output is [N].
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/point_grid.h"

namespace mxtrain {

inline constexpr int64_t kPointLabelColumns = 6;

// The names of those arguments.
MXTRAIN_API std::vector<std::string> PointLossArguments(const TShape& strides, int form);
// As InferShape and InferType of a property. Labels of narrow maps are float32: a narrow type does
// not hold the pixels of a large image.
MXTRAIN_API bool InferPointLossShapes(const TShape& strides, int form, const std::string& who,
                                      std::vector<TShape>* in, std::vector<TShape>* out);
MXTRAIN_API bool InferPointLossTypes(const std::vector<std::string>& names, const std::string& who,
                                     std::vector<DType>* in, std::vector<DType>* out);

// --- for kernels ---

// Numbers of the object of a point: there is none, or nothing is to be learnt at the point.
inline constexpr int32_t kBackground = -1, kNothingLearnt = -2;

// The objects of a batch, for maps of type T.
template <typename T>
struct PointLabels {
  using L = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using C = ComputeOf<T>;
  const L* rows;
  int64_t most, classes;

  PointLabels(const TBlob& label, int64_t its_classes)
      : rows(static_cast<const L*>(label.data)), most(label.shape[1]), classes(its_classes) {}

  struct Object {
    int64_t label;
    Corners<C> box;
    bool learnt;
  };
  // False if the row is none: no class of the net's, or without an area.
  MXTRAIN_HD bool Get(int64_t image, int64_t m, Object* object) const {
    const L* row = rows + (image * most + m) * kPointLabelColumns;
    if (!(row[0] >= L(0) && row[0] < static_cast<L>(classes))) return false;
    object->label = static_cast<int64_t>(row[0]);
    object->box = {static_cast<C>(row[1]), static_cast<C>(row[2]), static_cast<C>(row[3]),
                   static_cast<C>(row[4])};
    object->learnt = row[5] == L(0);
    return object->box.Area() > C(0);
  }
};

// Points of no object that are in one that nothing is to be learnt of. `object`: of each point of
// the image.
template <typename T>
MXTRAIN_HD void IgnoreInside(const PointMaps<T>& maps, const PointLabels<T>& labels, int64_t image,
                             int32_t* object) {
  for (int64_t m = 0; m < labels.most; ++m) {
    typename PointLabels<T>::Object ignored;
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
