// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention by the matrix units of a GPU.
#include "mxtrain/operator/tile_team.cuh"
#include "mxtrain/operators/scaled_dot_product_attention/attention_by_tiles.h"

MXTRAIN_OPERATOR(scaled_dot_product_attention_cuda, registry) {
  registry.AddKernel(mxtrain::attention::TileKernel<mxtrain::OnGpu>());
}
