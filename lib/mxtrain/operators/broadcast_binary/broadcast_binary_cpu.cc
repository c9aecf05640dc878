// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/broadcast_binary/broadcast_binary_loops.h"

namespace mxtrain::broadcast_binary {

MXTRAIN_OPERATOR(broadcast_binary_cpu, registry) {
  AddKernels<OnCpu>(registry);
  elemwise_binary::ForEachBinary(
      [&registry](auto f) { SimpleOp(registry, f.kBroadcastName).set_types(kFloatingTypes); });
}

}  // namespace mxtrain::broadcast_binary
