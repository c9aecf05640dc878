// SPDX-License-Identifier: Apache-2.0
#pragma once
// InstanceNorm: every channel of every sample is normalized over its places, then scaled by gamma
// and shifted by beta, both [C]: gamma (x - mean) / sqrt(variance + eps) + beta (Ulyanov, Vedaldi
// and Lempitsky, arXiv 1607.08022).
// The vectorized CPU kernel is in group_norm/group_norm_simd_cpu.cc.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct InstanceNormParam : Parameter<InstanceNormParam> {
  double eps;
  static void Declare(Fields<InstanceNormParam>& f) {
    f.Add("eps", &InstanceNormParam::eps).Default(1e-3).RangeAbove(0).Help("added to the variance");
  }
};

}  // namespace mxtrain
