#include "mxtrain/operator/identity.cuh"

MXTRAIN_OPERATOR(reshape_cuda, registry) {
  registry.AddRow(mxtrain::IdentityRow<mxtrain::OnGpu>("Reshape"));
}
