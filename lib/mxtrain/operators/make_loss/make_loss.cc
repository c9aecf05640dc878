// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/make_loss/make_loss.h"

#include "mxtrain/operator/registry.h"

MXTRAIN_OPERATOR(make_loss, registry) {
  registry.AddProperty("MakeLoss", {},
                       [] { return std::make_unique<mxtrain::MakeLossProperty>(); });
  registry.AddProperty("make_loss", {},
                       [] { return std::make_unique<mxtrain::MakeLossOfOnesProperty>(); });
}
