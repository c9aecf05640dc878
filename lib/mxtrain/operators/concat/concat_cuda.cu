#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/concat/concat_loops.h"

MXTRAIN_OPERATOR(concat_cuda, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnGpu>("Concat", concat::MakePlan<OnGpu>, Takes::kEveryType));
}
