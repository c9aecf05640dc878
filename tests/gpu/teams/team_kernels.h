// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPU kernels written for teams, compiled for the host; split over three files, since each
// kernel is a template over many types.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddSimpleTeamKernels(OperatorRegistry& registry);  // element by element, reductions, views
void AddLayerTeamKernels(OperatorRegistry& registry);
void AddUpdateTeamKernels(OperatorRegistry& registry);  // of weights

}  // namespace mxtrain::test
