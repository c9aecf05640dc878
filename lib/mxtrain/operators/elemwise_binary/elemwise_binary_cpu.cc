// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elemwise_binary/elemwise_binary_loops.h"

namespace mxtrain::elemwise_binary {

MXTRAIN_OPERATOR(elemwise_binary_cpu, registry) {
  AddKernels<OnCpu>(registry);
  ForEachBinary(
      [&registry](auto f) { SimpleOp(registry, f.kName).set_elementwise(f.kElementwise); });
  SimpleOp(registry, "_grad_add").set_elementwise(Add::kElementwise);
}

}  // namespace mxtrain::elemwise_binary
