// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/cudnn_descriptors.h"

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {

cudnnDataType_t CudnnType(DType type) {
  switch (type) {
    case DType::kFloat32:
      return CUDNN_DATA_FLOAT;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      Throw(ErrorKind::kBug, "cuDNN does not support {}", NameOf(type));
  }
}

}  // namespace mxtrain::cuda
