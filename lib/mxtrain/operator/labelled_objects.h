// SPDX-License-Identifier: Apache-2.0
#pragma once
// The labels of detectors, as their losses read them: [N, objects, 6] with rows of class, left,
// top, right, bottom in pixels of the image as the net reads it, and 0, or 1 for an object that
// nothing is to be learnt of; rows with a negative class are no objects.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

inline constexpr int64_t kObjectColumns = 6;

// In place of the number of an object, of a point or an anchor: it has none, or nothing is to be
// learnt there.
inline constexpr int32_t kBackground = -1, kNothingLearnt = -2;

// As InferType of a loss with these arguments, of which the last one is such a label, or is made of
// one: float32, or float64 beside float64, since a narrow type does not hold the pixels of a large
// image.
MXTRAIN_API bool InferLabelledTypes(const std::vector<std::string>& names, const std::string& who,
                                    std::vector<DType>* in, std::vector<DType>* out);

// For kernels over elements of type T.
template <typename T>
struct LabelledObjects {
  using L = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using C = ComputeOf<T>;
  const L* rows;
  int64_t most, classes;  // objects of an image; classes of the net

  LabelledObjects(const TBlob& label, int64_t classes_of_net)
      : rows(static_cast<const L*>(label.data)), most(label.shape[1]), classes(classes_of_net) {}

  struct Object {
    int64_t label;
    Corners<C> box;
    bool learnt;
  };
  // False if row m of the image is none: no class of the net's, or without an area.
  MXTRAIN_HD bool Get(int64_t image, int64_t m, Object* object) const {
    const L* row = rows + (image * most + m) * kObjectColumns;
    if (!(row[0] >= L(0) && row[0] < static_cast<L>(classes))) return false;
    object->label = static_cast<int64_t>(row[0]);
    object->box = {static_cast<C>(row[1]), static_cast<C>(row[2]), static_cast<C>(row[3]),
                   static_cast<C>(row[4])};
    object->learnt = row[5] == L(0);
    return object->box.Area() > C(0);
  }
};

}  // namespace mxtrain
