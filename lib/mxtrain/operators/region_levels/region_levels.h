// SPDX-License-Identifier: Apache-2.0
#pragma once
// RegionLevels: which level of a feature pyramid each region of interest is to be read from (Lin et
// al. 2017, arXiv 1612.03144, equation 1). rois [R, 5] with [image, x1, y1, x2, y2]; an output
// [R, 5] for each level from first_level to last_level, output0 being that of first_level, with the
// regions of that level, in their places, and rows of -1, which are no regions, in the places of
// the others. So the sum of ROIAlign or ROIPooling over the levels has each region from its own.
//
//   level = floor(usual_level + log2(sqrt(area) / usual_size) + 1e-6)
//
// or the nearest that there is. Regions of a negative image are none, of any level. Without a
// gradient: it is zero.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct RegionLevelsParam : Parameter<RegionLevelsParam> {
  int first_level, last_level;
  float usual_size, usual_level;
  static void Declare(Fields<RegionLevelsParam>& f);
};

class RegionLevelsProperty final : public PropertyWithoutGradient<RegionLevelsParam> {
 public:
  static constexpr int kMostLevels = 16;

  std::string TypeString() const override { return "RegionLevels"; }
  std::string Description() const override {
    return "regions of interest, apart for each level of a feature pyramid";
  }
  std::vector<std::string> ListArguments() const override { return {"rois"}; }
  std::vector<std::string> ListOutputs() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
