// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/hard_sigmoid/hard_sigmoid.h"

MXTRAIN_OPERATOR(hard_sigmoid, registry) {
  mxtrain::SimpleOp(registry, "hard_sigmoid")
      .set_kwargs_struct<mxtrain::hard_sigmoid::HardSigmoidParam>()
      .set_types(mxtrain::kFloatingTypes)
      .set_elementwise(mxtrain::Elementwise::kYes)
      .describe("alpha x + beta, clamped to [0, 1]");
}
