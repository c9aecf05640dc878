// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/teams/team_kernels.h"

#include "mxtrain/operators/global_norm/global_norm_loops.h"
#include "mxtrain/operators/loss_scale/loss_scale_loops.h"
#include "mxtrain/operators/optimizer_update/optimizer_update_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

void AddUpdateTeamKernels(OperatorRegistry& registry) {
  global_norm::AddKernels<OnTeams>(registry);
  loss_scale::AddKernels<OnTeams>(registry);
  optimizer_update::AddKernels<OnTeams>(registry);
}

}  // namespace mxtrain::test
