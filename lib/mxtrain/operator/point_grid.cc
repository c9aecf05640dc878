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

namespace {
// Of the maps of a level.
std::span<const char* const> MapsOf(int form) {
  static constexpr const char* kOfDistances[] = {"score", "side"};
  static constexpr const char* kOfCenters[] = {"score", "box", "objectness"};
  if (form == kCenters) return kOfCenters;
  return kOfDistances;
}
}  // namespace

std::vector<std::string> PointMapNames(const TShape& strides, int form) {
  std::vector<std::string> names;
  for (const char* const name : MapsOf(form)) {
    for (int l = 0; l < strides.ndim(); ++l) names.push_back(format("{}{}", name, l));
  }
  return names;
}

int FormOfBins(int bins, const std::string& who) {
  if (bins == 1)
    Throw(ErrorKind::kConfig, "{}: bins = 1: expected 0, or at least 2 for a distribution", who);
  return bins > 0 ? kDistributions : kDistances;
}

PointGridShape UnifyPointMaps(const TShape& strides, const std::string& who,
                              std::vector<TShape>* in, int form, int64_t bins) {
  const std::vector<std::string> names = PointMapNames(strides, form);
  const auto levels = static_cast<size_t>(strides.ndim());
  PointGridShape all;
  std::vector<TShape> grid(levels);  // [H, W]
  // Twice: what a later map says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < names.size(); ++i) {
      TShape& of_level = grid[i % levels];
      const bool sized = of_level.has_rank();
      int64_t channels = 1;  // of objectness
      if (i < levels) channels = all.classes;
      if (i >= levels && i < 2 * levels) channels = 4 * bins;
      TShape expected{all.images, channels, sized ? of_level[0] : TShape::kUnknown,
                      sized ? of_level[1] : TShape::kUnknown};
      UnifyShape((*in)[i], &expected, who, names[i]);
      (*in)[i] = expected;
      of_level = TShape{expected[2], expected[3]};
      all.images = expected[0];
      if (i < levels) all.classes = expected[1];
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
