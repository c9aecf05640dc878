// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/clip/clip.h"

MXTRAIN_OPERATOR(clip, registry) {
  mxtrain::SimpleOp(registry, "clip")
      .set_kwargs_struct<mxtrain::clip::ClipParam>()
      .set_elementwise(mxtrain::Elementwise::kYes)
      .set_mixed_precision({mxtrain::MixedPrecision::kFollows})
      .describe("clamps every element to [a_min, a_max]");
}
