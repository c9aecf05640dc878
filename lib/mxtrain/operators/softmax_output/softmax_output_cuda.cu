#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/softmax_output/softmax_output_loops.h"

MXTRAIN_OPERATOR(softmax_output_cuda, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnGpu>("SoftmaxOutput", softmax_output::MakePlan<OnGpu>));
}
