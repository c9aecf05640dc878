// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.h"

#include <algorithm>

#include "mxtrain/operator/identity.h"

namespace mxtrain {
namespace {

template <bool kAdd, typename T>
void Put(T* to, T value) {
  *to = kAdd ? static_cast<T>(
                   Plus(static_cast<AccumulatorOf<T>>(*to), static_cast<AccumulatorOf<T>>(value)))
             : value;
}

// f(row, offset of the row in the viewed array) for all rows, the runs along the last axis.
template <typename F>
void ForRows(const StridedView& view, F f) {
  const int last = view.ndim - 1;
  int64_t rows = 1;
  for (int i = 0; i < last; ++i) rows *= view.dim[i];
  if (rows == 0 || view.dim[last] == 0) return;
  ParallelFor(rows, std::max<int64_t>(1, kParallelGrain / view.dim[last]),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  int64_t offset = view.offset, rest = row;
                  for (int i = last - 1; i >= 0; --i) {
                    offset += rest % view.dim[i] * view.stride[i];
                    rest /= view.dim[i];
                  }
                  f(row, offset);
                }
              });
}

}  // namespace

StridedView StridedView::Collapsed() const {
  StridedView merged;
  merged.offset = offset;
  for (int i = 0; i < ndim; ++i) {
    if (dim[i] == 1) continue;
    const int last = merged.ndim - 1;
    if (last >= 0 && merged.stride[last] == dim[i] * stride[i]) {
      merged.dim[last] *= dim[i];
      merged.stride[last] = stride[i];
    } else {
      merged.Add(dim[i], stride[i]);
    }
  }
  if (merged.ndim == 0) merged.Add(1, 1);
  return merged;
}

void CopyFromView(const OnCpu&, OpReqType req, const TBlob& array, const StridedView& given,
                  const TBlob& dense) {
  const StridedView view = given.Collapsed();
  const int64_t run = view.dim[view.ndim - 1], step = view.stride[view.ndim - 1];
  SwitchType(dense.type, "a copy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    SwitchReq(req, [&](auto accumulate) {
      ForRows(view, [&](int64_t row, int64_t offset) {
        const T* from = array.dptr<T>() + offset;
        T* to = dense.dptr<T>() + row * run;
        for (int64_t i = 0; i < run; ++i) Put<accumulate()>(to + i, from[i * step]);
      });
    });
  });
}

void CopyToView(const OnCpu&, OpReqType req, const TBlob& dense, const StridedView& given,
                const TBlob& array) {
  const StridedView view = given.Collapsed();
  const int64_t run = view.dim[view.ndim - 1], step = view.stride[view.ndim - 1];
  SwitchType(dense.type, "a copy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    SwitchReq(req, [&](auto accumulate) {
      ForRows(view, [&](int64_t row, int64_t offset) {
        const T* from = dense.dptr<T>() + row * run;
        T* to = array.dptr<T>() + offset;
        for (int64_t i = 0; i < run; ++i) Put<accumulate()>(to + i * step, from[i]);
      });
    });
  });
}

void ScatterView(const OnCpu& device, OpReqType req, const TBlob& dense, const StridedView& view,
                 const TBlob& array) {
  ZeroBlob(device, req, array);
  CopyToView(device, req, dense, view, array);
}

}  // namespace mxtrain
