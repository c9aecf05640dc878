// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/pyramid_anchors.h"

#include <algorithm>

#include "mxtrain/base/math.h"

namespace mxtrain {

void PyramidFields::CheckPyramid(const std::string& who) const {
  const bool positive =
      strides.has_rank() && std::all_of(strides.begin(), strides.end(),
                                        [](int64_t s) { return s >= 1 && s <= (1 << 20); });
  if (!positive || strides.ndim() < 1 || strides.ndim() > kMostPyramidLevels) {
    Throw(ErrorKind::kConfig,
          "{}: strides = {}: expected one to {} positive numbers, one per level", who,
          strides.ToTuple(), kMostPyramidLevels);
  }
  if (sizes.size() != static_cast<size_t>(strides.ndim())) {
    Throw(ErrorKind::kConfig, "{}: sizes = {}: expected {}, one for each of the strides", who,
          params::Print(sizes), strides.ndim());
  }
  if (ratios.empty() || ratios.size() > kMostAnchorRatios) {
    Throw(ErrorKind::kConfig, "{}: ratios = {}: expected one to {} numbers", who,
          params::Print(ratios), kMostAnchorRatios);
  }
}

std::vector<std::string> PyramidFields::MapNames() const {
  std::vector<std::string> names;
  for (const char* const name : {"score", "offset"}) {
    for (int l = 0; l < strides.ndim(); ++l) names.push_back(format("{}{}", name, l));
  }
  return names;
}

PyramidShape UnifyPyramid(const PyramidFields& fields, const std::string& who, int64_t images,
                          std::vector<TShape>* in) {
  const std::vector<std::string> names = fields.MapNames();
  const auto levels = static_cast<size_t>(fields.strides.ndim());
  const auto ratios = static_cast<int64_t>(fields.ratios.size());
  PyramidShape all{images, 0};
  // Twice: what a later map says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < names.size(); ++i) {
      TShape& other = (*in)[(i + levels) % names.size()];  // of the same level
      const bool sized = other.has_rank() && other.ndim() == 4;
      TShape expected{all.images, i < levels ? ratios : 4 * ratios,
                      sized ? other[2] : TShape::kUnknown, sized ? other[3] : TShape::kUnknown};
      UnifyShape((*in)[i], &expected, who, names[i]);
      (*in)[i] = expected;
      all.images = expected[0];
    }
  }
  const TShape& first = (*in)[0];
  for (size_t l = 0; l < levels && all.anchors != TShape::kUnknown; ++l) {
    const TShape& map = (*in)[l];
    const bool sized = map[2] != TShape::kUnknown && map[3] != TShape::kUnknown;
    if (sized && map[2] * map[3] == 0)
      Throw(ErrorKind::kConfig, "{}: {} has shape {}, which has no cell", who, names[l],
            map.ToString());
    for (int axis = 2; sized && axis < 4; ++axis) {
      const int64_t side = first[axis] * fields.strides[0],
                    stride = fields.strides[static_cast<int>(l)];
      if (map[axis] == CeilDivide(side, stride)) continue;
      Throw(
          ErrorKind::kConfig,
          "{}: {} has shape {}; of an image of {} pixels, which the first level covers, a side at "
          "stride {} has {} cells",
          who, names[l], map.ToString(), side, stride, CeilDivide(side, stride));
    }
    all.anchors = sized ? all.anchors + map[2] * map[3] * ratios : TShape::kUnknown;
  }
  return all;
}

}  // namespace mxtrain
