// SPDX-License-Identifier: Apache-2.0
#pragma once
// RNN's loops for GPUs, with the host's matrix products.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddRnnOnTeams(OperatorRegistry& registry);

}  // namespace mxtrain::test
