// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/identity.cuh"

namespace mxtrain {
namespace {

struct Itself {
  template <typename C>
  MXTRAIN_HD C operator()(C x) const {
    return x;
  }
};

}  // namespace

void CopyBlob(const OnGpu& device, OpReqType req, const TBlob& from, const TBlob& to) {
  MXTRAIN_ASSERT(from.type == to.type && from.StoredSize() == to.StoredSize());
  const int64_t bytes = to.StoredSize() * SizeOf(to.type);
  if (req == OpReqType::kNullOp || bytes == 0) return;
  if (req == OpReqType::kAddTo) {
    SwitchType(to.type, "a copy", [&](auto tag) {
      MapElements<typename decltype(tag)::type>(device, to, req, Itself{}, from);
    });
  } else if (from.data != to.data) {
    MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(to.data, from.data, static_cast<size_t>(bytes),
                                       cudaMemcpyDeviceToDevice, StreamOf(device.ctx).get()));
  }
}

void ZeroBlob(const OnGpu& device, OpReqType req, const TBlob& to) {
  const int64_t bytes = to.StoredSize() * SizeOf(to.type);
  if (req == OpReqType::kNullOp || req == OpReqType::kAddTo || bytes == 0) return;
  MXTRAIN_CHECK_CUDA(
      cudaMemsetAsync(to.data, 0, static_cast<size_t>(bytes), StreamOf(device.ctx).get()));
}

}  // namespace mxtrain
