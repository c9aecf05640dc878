// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weight updates as operators: out = the new weight; states are auxiliary and mutated. Arguments:
// weight, grad, scalars. Values that change from step to step are in `scalars`, float32 [4] =
// [learning rate, weight decay, factor of the gradient, correction]; constants are parameters. The
// correction is the factor of the learning rate that corrects Adam's moments, for ftml and nadam
// the number t of the step, for sgld the key of its random numbers, and 1 elsewhere. Below, g =
// clip(factor * grad) and c = clip_gradient.
//
// With num_weights N above 1 all of them are updated together, each of its own shape and all of one
// type. Arguments: weight0, weight1, ..., grad0, grad1, ..., scalars [N, 4], one row each; outputs
// output0, output1, ...; auxiliary states: those of weight 0 (mean0, var0), then those of weight 1,
// and so on. The result has the same bits as N separate updates.
//
// With rows, the step is one of the rows of axis 0 that the array `rows` names, each once however
// often it is there; an index out of range becomes the nearest row. The other rows, and their
// states, keep their bits: with momentum, moments or weight decay that differs from a step with
// zero gradients. Arguments: weight, grad, rows (of any shape), scalars; outputs: output, and
// cleared, the gradient with zeros in these rows, so that the next one can be added up in it. One
// weight at a time; not for lamb and lars, whose norms are of the whole array, nor for
// group_adagrad.
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
//   signsgd_update      w (1 - lr wd) - lr sign(g)  (Bernstein et al., arXiv 1802.04434)
//   signum_update       m <- momentum m - (1 - momentum) (g + wd w);
//                       w (1 - lr wd_lh) + lr sign(m)  (the same)
//   ftml_update         g' = clip(factor grad + wd w);  v <- beta2 v + (1 - beta2) g'^2;
//                       d' = (1 - beta1^t) / lr (sqrt(v / (1 - beta2^t)) + epsilon);
//                       z <- beta1 z + (1 - beta1) g' - (d' - beta1 d) w;  d <- d';  w = -z / d';
//                       a rate of 0 skips the step  (Zheng and Kwok, ICML 2017, algorithm 2)
//   nadam_update        mean, var of g' as adam; with
//                       mu(t) = beta1 (1 - 0.96^(t schedule_decay) / 2)
//                       and p(t) their product up to step t:
//                       w - lr ((1 - mu(t)) g' / (1 - p(t)) + mu(t + 1) mean / (1 - p(t + 1))) /
//                           (sqrt(var / (1 - beta2^t)) + epsilon)   (Dozat, ICLR 2016 workshop)
//   adamax_update       mean of g' as adam;  norm <- max(beta2 norm, |g'|);
//                       w - lr correction mean / norm, w where norm is 0
//                       (Kingma and Ba, arXiv 1412.6980, section 7)
//   lion_update         w - lr (sign(beta1 m + (1 - beta1) g) + wd w);
//                       m <- beta2 m + (1 - beta2) g
//                       (Chen et al., arXiv 2302.06675, algorithm 2)
//   dcasgd_update       m <- momentum m - lr (g + wd w + lambda g^2 m);  w + m: the weight
//                       moved by m since the gradient's step  (Zheng et al., arXiv 1609.08326)
//   sgld_update         w - lr / 2 (g + wd w) + sqrt(lr) e, e standard normal: element i is
//                       draw i of the key; no noise where lr is negative
//                       (Welling and Teh, ICML 2011)
//   group_adagrad_update  for each index of axis 0: history <- history + mean(g^2);
//                         w - lr (g / sqrt(history + epsilon) + wd w);
//                         every element of the group holds its history
//
// The kernels update weights in the layout in which they are stored. Those of sgld and
// group_adagrad take plain arrays only, and that of ftml no layout with padding: a weight stored in
// another layout is reordered at each step.
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/update_params.h"

namespace mxtrain::optimizer_update {

inline constexpr size_t kRows = 2;  // the argument `rows`, behind one weight and its gradient

enum Scalar { kLr, kWeightDecay, kRescale, kCorrection, kNumScalars };

// Parameters of every rule.
struct CommonParam {
  double clip_gradient = -1;
  int num_weights = 1;
  bool rows = false;
  template <typename P>
  static void DeclareCommon(Fields<P>& f) {
    f.Add("clip_gradient", &P::clip_gradient)
        .Default(-1)
        .Help("limit of each element of the scaled gradient; negative: none");
    f.Add("num_weights", &P::num_weights)
        .Default(1)
        .Range(1, kMostArguments)
        .Help("number of weights updated together");
    f.Add("rows", &P::rows)
        .Default(false)
        .Help("update only the rows that an argument of this name lists, and clear their gradient");
  }
};

// Of a rule with the constants C (operator/update_params.h).
template <typename C>
struct UpdateParam : CommonParam, C, Parameter<UpdateParam<C>> {
  static void Declare(Fields<UpdateParam>& f) {
    C::DeclareConstants(f);
    CommonParam::DeclareCommon(f);
  }
};

}  // namespace mxtrain::optimizer_update
