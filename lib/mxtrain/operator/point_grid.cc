// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/point_grid.h"

namespace mxtrain {

void CheckStrides(const TShape& strides, const std::string& who) {
  const bool positive =
      strides.has_rank() && std::all_of(strides.begin(), strides.end(),
                                        [](int64_t s) { return s >= 1 && s <= (1 << 20); });
  if (positive && strides.ndim() >= 1 && strides.ndim() <= kMostPointLevels) return;
  Throw(ErrorKind::kConfig, "{}: strides = {}: expected one to {} positive numbers, one per level",
        who, strides.ToTuple(), kMostPointLevels);
}

std::vector<std::string> PointMapNames(const TShape& strides) {
  std::vector<std::string> names;
  for (const char* const name : {"score", "side"}) {
    for (int l = 0; l < strides.ndim(); ++l) names.push_back(format("{}{}", name, l));
  }
  return names;
}

PointGridShape UnifyPointMaps(const TShape& strides, const std::string& who,
                              std::vector<TShape>* in) {
  const std::vector<std::string> names = PointMapNames(strides);
  const auto levels = static_cast<size_t>(strides.ndim());
  PointGridShape all;
  // Twice: what a later map says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < 2 * levels; ++i) {
      const TShape& other = (*in)[i < levels ? i + levels : i - levels];
      const bool sized = other.has_rank() && other.ndim() == 4;
      const bool is_score = i < levels;
      TShape expected{all.images, is_score ? all.classes : 4, sized ? other[2] : TShape::kUnknown,
                      sized ? other[3] : TShape::kUnknown};
      UnifyShape((*in)[i], &expected, who, names[i]);
      (*in)[i] = expected;
      all.images = expected[0];
      if (is_score) all.classes = expected[1];
    }
  }
  if (all.classes == 0) Throw(ErrorKind::kConfig, "{}: the scores are of no class", who);
  all.points = 0;
  for (size_t l = 0; l < levels && all.points != TShape::kUnknown; ++l) {
    const TShape& map = (*in)[l];
    all.points = map.known() ? all.points + map[2] * map[3] : TShape::kUnknown;
  }
  return all;
}

}  // namespace mxtrain
