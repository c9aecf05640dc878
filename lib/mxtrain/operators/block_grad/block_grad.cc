// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/block_grad/block_grad.h"

#include "mxtrain/operator/registry.h"

MXTRAIN_OPERATOR(block_grad, registry) {
  registry.AddProperty("BlockGrad", {"stop_gradient"},
                       [] { return std::make_unique<mxtrain::BlockGradProperty>(); });
}
