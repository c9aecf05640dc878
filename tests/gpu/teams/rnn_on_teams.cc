// SPDX-License-Identifier: Apache-2.0
#include "rnn_on_teams.h"

#include "mxtrain/operators/rnn/rnn_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

void AddRnnOnTeams(OperatorRegistry& registry) {
  registry.AddKernel(LastKernel<OnTeams>("RNN", rnn::PlanLoops<OnTeams>));
}

}  // namespace mxtrain::test
