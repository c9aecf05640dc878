#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/pooling/pooling_loops.h"

MXTRAIN_OPERATOR(pooling_cuda, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnGpu>("Pooling", pooling::MakePlan<OnGpu>));
}
