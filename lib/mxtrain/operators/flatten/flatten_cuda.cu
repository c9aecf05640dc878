#include "mxtrain/operator/identity.cuh"

MXTRAIN_OPERATOR(flatten_cuda, registry) {
  registry.AddRow(mxtrain::IdentityRow<mxtrain::OnGpu>("Flatten"));
}
