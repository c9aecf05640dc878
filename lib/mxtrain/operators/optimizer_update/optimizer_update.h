#pragma once
// Weight updates as operators: out = the new weight, states are auxiliary and mutated. Arguments: weight, grad, scalars. What changes from
// step to step lies in `scalars`, float32 [4] = [learning rate, weight decay, factor of the gradient, factor of the learning rate that
// corrects Adam's moments (1 elsewhere)]; what stays is a parameter. Below, g = clip(factor * grad) and c = clip_gradient.
//   sgd_update       w (1 - lr wd) - lr g
//   sgd_mom_update   m <- momentum m - lr wd w - lr g;  w + m
//   nag_mom_update   g' = g + wd w;  m <- momentum m - lr g';  w + momentum m - lr g'
//   adam_update      g' = clip(factor grad + wd w);  mean, var of g';  w - lr correction mean / (sqrt(var) + epsilon)
//   adamw_update     the same with g' = g, and w loses lr wd w beside
#include "mxtrain/base/params.h"

namespace mxtrain::optimizer_update {

enum Scalar { kLr, kWeightDecay, kRescale, kCorrection, kNumScalars };

struct SgdParam : Parameter<SgdParam> {
  double clip_gradient = -1;
  static void Declare(Fields<SgdParam>& f) { DeclareClip(f, &SgdParam::clip_gradient); }
  template <typename P>
  static void DeclareClip(Fields<P>& f, double P::*member) {
    f.Add("clip_gradient", member).Default(-1).Help("bound of each element of the scaled gradient; negative: none");
  }
};

struct MomentumParam : Parameter<MomentumParam> {
  double momentum = 0, clip_gradient = -1;
  static void Declare(Fields<MomentumParam>& f) {
    f.Add("momentum", &MomentumParam::momentum).Default(0).Help("share of the last update that is kept");
    SgdParam::DeclareClip(f, &MomentumParam::clip_gradient);
  }
};

struct AdamParam : Parameter<AdamParam> {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, clip_gradient = -1;
  static void Declare(Fields<AdamParam>& f) {
    f.Add("beta1", &AdamParam::beta1).Default(0.9).Range(0, 1).Help("decay of the mean of gradients");
    f.Add("beta2", &AdamParam::beta2).Default(0.999).Range(0, 1).Help("decay of the mean of squared gradients");
    f.Add("epsilon", &AdamParam::epsilon).Default(1e-8).Range(0).Help("added to the root of the mean square");
    SgdParam::DeclareClip(f, &AdamParam::clip_gradient);
  }
};

}  // namespace mxtrain::optimizer_update
