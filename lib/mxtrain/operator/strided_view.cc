// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.h"

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

}  // namespace mxtrain
