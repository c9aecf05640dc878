#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/image_normalize/image_normalize_loops.h"

MXTRAIN_OPERATOR(image_normalize_cuda, registry) {
  registry.AddRow(mxtrain::image_normalize::Row<mxtrain::OnGpu>());
}
