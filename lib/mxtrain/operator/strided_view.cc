// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.h"

#include "mxtrain/operator/view_moves.h"

namespace mxtrain {

int64_t StridedView::Size() const {
  int64_t size = 1;
  for (int i = 0; i < ndim; ++i) size *= dim[i];
  return size;
}

StridedView StridedView::Dense() const {
  StridedView dense = *this;
  dense.offset = 0;
  int64_t step = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    dense.stride[i] = step;
    step *= dim[i];
  }
  return dense;
}

void CopyFromView(const OnCpu& device, OpReqType req, const TBlob& array, const StridedView& view,
                  const TBlob& dense) {
  if (req != OpReqType::kNullOp)
    RunMove(device, Merge(view, view.Dense()), array, dense, req == OpReqType::kAddTo);
}

}  // namespace mxtrain
