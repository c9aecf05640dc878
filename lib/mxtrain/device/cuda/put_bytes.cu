// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/put_bytes.h"

#include <cstring>

#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/cuda/launch.cuh"

namespace mxtrain::cuda {
namespace {

// The bytes travel as an argument of the kernel: no host memory must stay valid.
struct PutBody {
  char bytes[Backend::kMostPutBytes];
  char* to;
  MXTRAIN_HD void operator()(int64_t i) const { to[i] = bytes[i]; }
};

}  // namespace

void PutBytes(CudaStream& stream, const void* value, void* dst, int64_t bytes) {
  MXTRAIN_ASSERT(bytes <= Backend::kMostPutBytes);
  PutBody body{{}, static_cast<char*>(dst)};
  std::memcpy(body.bytes, value, static_cast<size_t>(bytes));
  Loop(stream, bytes, body);
}

}  // namespace mxtrain::cuda
