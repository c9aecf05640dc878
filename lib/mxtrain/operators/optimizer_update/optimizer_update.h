// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weight updates as operators: out = the new weight; states are auxiliary and mutated. Arguments:
// weight, grad, scalars. Values that change from step to step are in `scalars`, float32 [4] =
// [learning rate, weight decay, factor of the gradient, factor of the learning rate that corrects
// Adam's moments (1 elsewhere)]; constants are parameters. Below, g = clip(factor * grad) and c =
// clip_gradient.
//
// With num_weights N above 1 all of them are updated together, each of its own shape and all of one
// type. Arguments: weight0, weight1, ..., grad0, grad1, ..., scalars [N, 4], one row each; outputs
// output0, output1, ...; auxiliary states: those of weight 0 (mean0, var0), then those of weight 1,
// and so on. The result has the same bits as N separate updates.
//
// A factor of exactly 0 skips the step: weight and states keep their bits, whatever the gradient
// holds (inf, NaN).
//
//   sgd_update       w (1 - lr wd) - lr g
//   sgd_mom_update   m <- momentum m - lr wd w - lr g;  w + m
//   nag_mom_update   g' = g + wd w;  m <- momentum m - lr g';  w + momentum m - lr g'
//   adam_update      g' = clip(factor grad + wd w);  mean, var of g';
//                    w - lr correction mean / (sqrt(var) + epsilon)
//   adamw_update     the same with g' = g, and w additionally loses lr wd w
//
// The following match MXNet's optimizers; mean_square <- rho mean_square + (1 - rho) g'^2, others
// likewise:
//
//   rmsprop_update      g' = clip(factor grad + wd w);  w - lr g' / sqrt(mean_square + epsilon)
//                       (Tieleman and Hinton, Coursera lecture 6.5, 2012)
//   rmsprop_mom_update  the same step into a momentum:
//                       delta <- momentum delta - lr g' / sqrt(...);  w + delta
//   rmspropalex_update  with mean_square - mean^2, mean of g', under the root
//                       (Graves, arXiv 1308.0850, equations 38 to 45)
//   adagrad_update      sum <- sum + g^2;  w - lr (g / sqrt(sum + epsilon) + wd w)
//                       (Duchi, Hazan and Singer, JMLR 12, 2011)
//   adadelta_update     mean_square of g;
//                       d = g sqrt(mean_delta + epsilon) / sqrt(mean_square + epsilon);
//                       mean_delta <- rho mean_delta + (1 - rho) d^2;  w - lr (d + wd w)
//                       (Zeiler, arXiv 1212.5701)
//   ftrl_update         z <- z + g - (sqrt(n + g^2) - sqrt(n)) w / lr;  n <- n + g^2;
//                       w = 0 where |z| <= lambda1,
//                       else (sign(z) lambda1 - z) / ((beta + sqrt(n)) / lr + wd)
//                       (McMahan et al., KDD 2013, algorithm 1)
//   lamb_update         mean, var as adamw;  r = correction mean / (sqrt(var) + epsilon) + wd w;
//                       w - lr (|w| / |r|) r, the norms over the whole array, their ratio 1 where
//                       one is 0  (You et al., arXiv 1904.00962, algorithm 2)
//   lars_update         ratio = eta |w| / (|g| + wd |w| + epsilon);
//                       m <- momentum m - lr ratio (g + wd w);  w + m;
//                       the ratio is 1 without weight decay, as biases are, and where a norm is 0
//                       (You et al., arXiv 1708.03888, algorithm 1)
#include "mxtrain/base/params.h"
#include "mxtrain/operator/most_arguments.h"

namespace mxtrain::optimizer_update {

enum Scalar { kLr, kWeightDecay, kRescale, kCorrection, kNumScalars };

// Parameters of every rule.
struct CommonParam {
  double clip_gradient = -1;
  int num_weights = 1;
  template <typename P>
  static void DeclareCommon(Fields<P>& f) {
    f.Add("clip_gradient", &P::clip_gradient)
        .Default(-1)
        .Help("limit of each element of the scaled gradient; negative: none");
    f.Add("num_weights", &P::num_weights)
        .Default(1)
        .Range(1, kMostArguments)
        .Help("number of weights updated together");
  }
  // Parameters of several rules.
  template <typename P>
  static void DeclareDecay(Fields<P>& f, const char* name, double P::*decay, double fallback,
                           const char* help) {
    f.Add(name, decay).Default(fallback).RangeBelow(0, 1).Help(help);
  }
  template <typename P>
  static void DeclareMomentum(Fields<P>& f) {
    DeclareDecay(f, "momentum", &P::momentum, 0, "fraction of the previous update that is kept");
  }
  template <typename P>
  static void DeclareEpsilon(Fields<P>& f, double fallback, const char* help) {
    f.Add("epsilon", &P::epsilon).Default(fallback).RangeAbove(0).Help(help);
  }
};

struct SgdParam : CommonParam, Parameter<SgdParam> {
  static void Declare(Fields<SgdParam>& f) { DeclareCommon(f); }
};

struct MomentumParam : CommonParam, Parameter<MomentumParam> {
  double momentum = 0;
  static void Declare(Fields<MomentumParam>& f) {
    DeclareMomentum(f);
    DeclareCommon(f);
  }
};

struct AdamParam : CommonParam, Parameter<AdamParam> {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  static void Declare(Fields<AdamParam>& f) {
    DeclareDecay(f, "beta1", &AdamParam::beta1, 0.9, "decay of the mean of gradients");
    DeclareDecay(f, "beta2", &AdamParam::beta2, 0.999, "decay of the mean of squared gradients");
    DeclareEpsilon(f, 1e-8, "added to the root of the mean square");
    DeclareCommon(f);
  }
};

struct RmsPropParam : CommonParam, Parameter<RmsPropParam> {
  double rho = 0.9, momentum = 0, epsilon = 1e-8;
  static void Declare(Fields<RmsPropParam>& f) {
    DeclareDecay(f, "rho", &RmsPropParam::rho, 0.9, "decay of the mean of squared gradients");
    DeclareMomentum(f);
    DeclareEpsilon(f, 1e-8, "added to the mean square, under the root");
    DeclareCommon(f);
  }
};

struct AdagradParam : CommonParam, Parameter<AdagradParam> {
  double epsilon = 1e-7;
  static void Declare(Fields<AdagradParam>& f) {
    DeclareEpsilon(f, 1e-7, "added to the sum of squares, under the root");
    DeclareCommon(f);
  }
};

struct AdadeltaParam : CommonParam, Parameter<AdadeltaParam> {
  double rho = 0.9, epsilon = 1e-5;
  static void Declare(Fields<AdadeltaParam>& f) {
    DeclareDecay(f, "rho", &AdadeltaParam::rho, 0.9, "decay of the means of squares");
    DeclareEpsilon(f, 1e-5, "added to both means, under the roots");
    DeclareCommon(f);
  }
};

struct FtrlParam : CommonParam, Parameter<FtrlParam> {
  double lambda1 = 0.01, beta = 1;
  static void Declare(Fields<FtrlParam>& f) {
    f.Add("lambda1", &FtrlParam::lambda1)
        .Default(0.01)
        .Range(0)
        .Help("weight of the L1 norm; higher gives more zero weights");
    f.Add("beta", &FtrlParam::beta)
        .Default(1)
        .Range(0)
        .Help("added to the root of the sum of squared gradients");
    DeclareCommon(f);
  }
};

struct LarsParam : CommonParam, Parameter<LarsParam> {
  double momentum = 0, eta = 0.001, epsilon = 0;
  static void Declare(Fields<LarsParam>& f) {
    DeclareMomentum(f);
    f.Add("eta", &LarsParam::eta)
        .Default(0.001)
        .Range(0)
        .Help("trust coefficient: norm of an update relative to the weights, at a rate of 1");
    f.Add("epsilon", &LarsParam::epsilon).Default(0).Range(0).Help("added to the divisor");
    DeclareCommon(f);
  }
};

}  // namespace mxtrain::optimizer_update
