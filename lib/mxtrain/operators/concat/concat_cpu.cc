#include "mxtrain/operators/concat/concat_loops.h"

MXTRAIN_OPERATOR(concat_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("Concat", concat::MakePlan<OnCpu>, Takes::kEveryType));
}
