// SPDX-License-Identifier: Apache-2.0
#pragma once
// PointBoxes: the boxes that a detector without anchors (operator/point_grid.h) proposes, one for
// each point: output [N, points, 6] with rows of the class with the best score, that score (its
// sigmoid; of centres times that of the objectness), left, top, right, bottom, in pixels of the
// image as the net reads it, which the first grid covers: with `clip`, boxes end where that does.
// What box_nms takes with id_index = 0. Without a gradient: it is zero; PointBoxLoss trains maps of
// distances, SimOtaLoss those of centres.
#include "mxtrain/operator/point_grid.h"

namespace mxtrain {

struct PointBoxesParam : Parameter<PointBoxesParam> {
  TShape strides;
  int form, bins;
  bool clip;
  // With what `bins` says.
  int Form() const { return form == kCenters ? form : FormOfBins(bins, "PointBoxes"); }
  static void Declare(Fields<PointBoxesParam>& f) {
    DeclareStrides(f, &PointBoxesParam::strides);
    f.Add("form", &PointBoxesParam::form)
        .Enum({{"distances", kDistances}, {"centers", kCenters}})
        .Default(kDistances)
        .Help("what the maps say: distances of sides, or centre, size and objectness (YOLOX)");
    DeclareBins(f, &PointBoxesParam::bins);
    f.Add("clip", &PointBoxesParam::clip).Default(true).Help("boxes end at the edges of the image");
  }
};

class PointBoxesProperty final : public PropertyWithParam<PointBoxesParam> {
 public:
  static constexpr int64_t kColumns = 6;

  std::string TypeString() const override { return "PointBoxes"; }
  std::string Description() const override {
    return "the boxes that a detector without anchors proposes: class, score and corners";
  }
  std::vector<std::string> ListArguments() const override {
    return PointMapNames(param_.strides, param_.Form());
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
