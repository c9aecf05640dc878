// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupNorm: channels in num_groups groups; every group of every sample is normalized, then scaled
// by gamma and shifted by beta (Wu and He, arXiv 1803.08494). gamma and beta have an element per
// group, as in MXNet, or per channel, as in the paper, if their shape is given so. With
// output_mean_var also the mean and sqrt(variance + eps) of every group, [N, num_groups].
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct GroupNormParam : Parameter<GroupNormParam> {
  int num_groups;
  double eps;
  bool output_mean_var;
  static void Declare(Fields<GroupNormParam>& f) {
    f.Add("num_groups", &GroupNormParam::num_groups)
        .Default(1)
        .Range(1)
        .Help("groups of channels; a divisor of their number");
    f.Add("eps", &GroupNormParam::eps).Default(1e-5).RangeAbove(0).Help("added to the variance");
    f.Add("output_mean_var", &GroupNormParam::output_mean_var)
        .Default(false)
        .Help("also output the mean and the standard deviation of every group");
  }
};

}  // namespace mxtrain
