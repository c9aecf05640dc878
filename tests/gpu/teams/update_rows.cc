#include "tests/gpu/teams/team_rows.h"

#include "mxtrain/operators/global_norm/global_norm_loops.h"
#include "mxtrain/operators/loss_scale/loss_scale_loops.h"
#include "mxtrain/operators/optimizer_update/optimizer_update_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

void AddUpdateTeamRows(OperatorRegistry& registry) {
  global_norm::AddRows<OnTeams>(registry);
  loss_scale::AddRows<OnTeams>(registry);
  optimizer_update::AddRows<OnTeams>(registry);
}

}  // namespace mxtrain::test
