// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_sum/elementwise_sum.h"

#include "mxtrain/operator/registry.h"

MXTRAIN_OPERATOR(elementwise_sum, registry) {
  registry.AddProperty("ElementWiseSum", {"add_n"},
                       [] { return std::make_unique<mxtrain::ElementWiseSumProperty>(); });
}
