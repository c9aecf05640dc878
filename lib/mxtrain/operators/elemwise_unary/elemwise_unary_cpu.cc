// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elemwise_unary/elemwise_unary_loops.h"

namespace mxtrain::elemwise_unary {

MXTRAIN_OPERATOR(elemwise_unary_cpu, registry) {
  AddKernels<OnCpu>(registry);
  ForEachUnary([&registry](auto f) {
    SimpleOp op(registry, f.kName);
    op.set_elementwise(f.kElementwise);
    if (!f.kIntegers) op.set_types(kFloatingTypes);
  });
}

}  // namespace mxtrain::elemwise_unary
