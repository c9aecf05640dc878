// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/sim_ota_loss/sim_ota_loss.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void SimOtaLossParam::Declare(Fields<SimOtaLossParam>& f) {
  using P = SimOtaLossParam;
  DeclareStrides(f, &P::strides);
  f.Add("candidates", &P::candidates)
      .Default(10)
      .Range(1, SimOtaLossProperty::kMostCandidates)
      .Help("points whose overlaps say how many are to find an object: as many at most");
  f.Add("center_radius", &P::center_radius)
      .Default(2.5f)
      .Range(0, 1e6)
      .Help("how far from the centre of an object points are near it, in strides");
  f.Add("overlap_cost", &P::overlap_cost)
      .Default(3.0f)
      .Range(0, 1e4)
      .Help("weight of the overlap beside the scores when they are chosen");
  const auto weight = [&f](const char* name, float P::*member, float standard, const char* help) {
    f.Add(name, member).Default(standard).Range(0, 1e6).Help(help);
  };
  weight("box_weight", &P::box_weight, 5, "weight of the overlaps in the loss");
  weight("objectness_weight", &P::objectness_weight, 1, "weight of the objectness in the loss");
  weight("class_weight", &P::class_weight, 1, "weight of the scores of classes in the loss");
  weight("l1_weight", &P::l1_weight, 0,
         "weight of the differences of the maps of boxes in the loss; YOLOX's last epochs: 1");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(sim_ota_loss, registry) {
  registry.AddProperty("SimOtaLoss", {},
                       [] { return std::make_unique<mxtrain::SimOtaLossProperty>(); });
}
