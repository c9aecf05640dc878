// SPDX-License-Identifier: Apache-2.0
// Convolution by cuDNN.
#include "mxtrain/device/cuda/cudnn_convolution.h"
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/convolution/convolution_by_library.h"

MXTRAIN_OPERATOR(convolution_cudnn_cuda, registry) {
  using namespace mxtrain;
  convolution::AddLibraryKernels<OnGpu, cuda::CudnnConvolution>("cudnn", registry);
}
