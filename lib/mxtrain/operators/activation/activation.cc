// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/activation/activation.h"

#include "mxtrain/operator/registry.h"

MXTRAIN_OPERATOR(activation, registry) {
  registry.AddProperty("Activation", {},
                       [] { return std::make_unique<mxtrain::ActivationProperty>(); });
}
