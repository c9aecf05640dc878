// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/broadcast_to/broadcast_to_loops.h"

MXTRAIN_OPERATOR(broadcast_to_cpu, registry) {
  using namespace mxtrain;
  broadcast_to::AddKernels<OnCpu>(registry);
  for (const char* name : {"broadcast_axis", "broadcast_to", "broadcast_like"})
    SimpleOp(registry, name).set_types(kFloatingTypes);
}
