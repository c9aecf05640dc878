// SPDX-License-Identifier: Apache-2.0
// The cases of all operators on GPU kernels, for machines without a GPU: code written for teams
// runs on the host, with members taking turns.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "host_as_gpu.h"
#include "library_convolution.h"
#include "rnn_on_teams.h"
#include "tests/support/operator_case.h"
#include "tile_attention.h"

namespace mxtrain {

// Generated: the kernels of every operator folder for OnTeams (tests/support/team_device.h).
void RegisterTeamKernels(OperatorRegistry& registry);

}  // namespace mxtrain

int main(int argc, char** argv) {
  using namespace mxtrain;
  const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  RegisterTeamKernels(*registry);
  test::AddLibraryConvolution(*registry);
  test::AddTileAttention(*registry);
  test::AddRnnOnTeams(*registry);
  test::HostAsGpu backend;
  test::TestOn(Context::gpu(0), registry, &backend);
  return doctest::Context(argc, argv).run();
}
