// SPDX-License-Identifier: Apache-2.0
#pragma once
// The joint norm of many arrays, and clipping by it, without a transfer to the host.
//
// multi_sum_sq: the sum of squares of each of N arrays, [N] in float64 (float32 would overflow at a
// norm of 1.8e19). Arguments: array0, array1, ..., of any floating types and layouts. The order of
// summation depends only on the size of the array.
//
// clip_global_norm: the `scalars` of an optimizer's update (optimizer_update.h), [4] or [K, 4],
// with the gradient factor f of each row reduced if the gradients are too long:
//   f <- f min(1, max_norm / (|f| ||g||)),  ||g|| = sqrt(the sum of `sums`), added in order
// (Pascanu, Mikolov and Bengio, arXiv 1211.5063, algorithm 1). A norm that is inf or NaN leaves f
// unchanged, so that a diverging run is noticed. Arguments: sums [N] float64, from multi_sum_sq;
// scalars, which the output may overwrite.
#include "mxtrain/operator/property.h"

namespace mxtrain::global_norm {

struct MultiSumSqParam : Parameter<MultiSumSqParam> {
  int num_arrays;
  static void Declare(Fields<MultiSumSqParam>& f) {
    f.Add("num_arrays", &MultiSumSqParam::num_arrays).Required().Range(1).Help("number of inputs");
  }
};

struct ClipGlobalNormParam : Parameter<ClipGlobalNormParam> {
  double max_norm;
  static void Declare(Fields<ClipGlobalNormParam>& f) {
    f.Add("max_norm", &ClipGlobalNormParam::max_norm)
        .Required()
        .Range(0)
        .Help("limit of the joint norm of all gradients");
  }
};

}  // namespace mxtrain::global_norm
