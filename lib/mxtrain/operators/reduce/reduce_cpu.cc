// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::reduce {
namespace {

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return ReducedShape(src, env.As<ReduceParam>(), F::kName);
}

}  // namespace

MXTRAIN_OPERATOR(reduce_cpu, registry) {
  AddKernels<OnCpu>(registry);
  ForEachReduction([&registry](auto f) {
    SimpleOp(registry, f.kName).set_shape_function(Shape<decltype(f)>).set_types(kFloatingTypes);
  });
}

}  // namespace mxtrain::reduce
