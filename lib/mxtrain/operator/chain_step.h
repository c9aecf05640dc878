// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which operators can be steps of a fused chain (operators/elementwise_chain): those that need no
// more than a row of their arrays at a time.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum class ChainStep {
  kNone,
  kElementwise,  // OperatorProperty::elementwise; arguments may be repeated along axes
  kDropout,      // with a draw for every element; nothing reads its mask
  kReduction,    // over the last axes, which stay with length 1
};

// From the operator and its parameters. Whether the shapes fit is for the chain's kernel to decide.
MXTRAIN_API ChainStep ChainStepOf(const OperatorProperty& op);

}  // namespace mxtrain
