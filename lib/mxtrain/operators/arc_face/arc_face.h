// SPDX-License-Identifier: Apache-2.0
#pragma once
// ArcFace: a head that separates classes by angles (Deng et al. 2019, arXiv 1801.07698). data
// [N, features] and weight [classes, features], one direction for each class; label [N]. With a the
// angle between a sample and a direction:
//   cosine   scale cos(a)
//   output   the same, but scale cos(a + margin) for the label's class; past a = pi - margin, where
//            that would grow again, scale (cos(a) - margin sin(margin))
// SoftmaxOutput follows `output` in training. For predictions read `cosine`, which depends on no
// label.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ArcFaceParam : Parameter<ArcFaceParam> {
  int64_t num_hidden;
  double margin, scale;
  static void Declare(Fields<ArcFaceParam>& f) {
    f.Add("num_hidden", &ArcFaceParam::num_hidden).Required().Range(1).Help("number of classes");
    f.Add("margin", &ArcFaceParam::margin)
        .Range(0, 1.5)
        .Default(0.5)
        .Help("angle that is added for the label's class, in radians");
    f.Add("scale", &ArcFaceParam::scale).RangeAbove(0).Default(64).Help("factor of the cosines");
  }
};

class ArcFaceProperty final : public PropertyWithParam<ArcFaceParam> {
 public:
  enum Argument { kData, kWeight, kLabel };

  std::string TypeString() const override { return "ArcFace"; }
  std::string Description() const override {
    return "cosines of angles to the directions of classes, with a margin for the label's class";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "weight", "label"}; }
  std::vector<std::string> ListOutputs() const override { return {"output", "cosine"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool HasGradient(int argument) const override { return argument != kLabel; }
  bool Lower(Lowering* graph) const override;
};

}  // namespace mxtrain
