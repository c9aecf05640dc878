// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elemwise_scalar/elemwise_scalar_loops.h"

namespace mxtrain::elemwise_scalar {

MXTRAIN_OPERATOR(elemwise_scalar_cpu, registry) {
  AddKernels<OnCpu>(registry);
  ForEachScalar([&registry](auto f) {
    SimpleOp(registry, std::string(f.kName) + "_scalar").set_elementwise(f.kElementwise);
  });
}

}  // namespace mxtrain::elemwise_scalar
