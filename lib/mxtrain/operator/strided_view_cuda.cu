// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/strided_view.cuh"

namespace mxtrain {
namespace {

// to = from as `req` says, for requests without accumulation.
template <typename T>
MXTRAIN_HD void Put(OpReqType req, T* to, T from) {
  if (req == OpReqType::kAddTo) {
    Assign(req, to, 0, static_cast<AccumulatorOf<T>>(from));
  } else {
    *to = from;
  }
}

template <typename T>
struct FromView {
  StridedView view;
  OpReqType req;
  const T* array;
  T* dense;
  MXTRAIN_HD void operator()(int64_t i) const { Put(req, dense + i, array[view.Place(i)]); }
};
template <typename T>
struct ToView {
  StridedView view;
  OpReqType req;
  const T* dense;
  T* array;
  MXTRAIN_HD void operator()(int64_t i) const { Put(req, array + view.Place(i), dense[i]); }
};

// The rows of a piece within the whole array.
StridedView PieceOf(const AxisView& view, int64_t begin, int64_t length) {
  StridedView piece;
  piece.offset = begin * view.inner;
  piece.Add(view.outer, view.length * view.inner);
  piece.Add(length * view.inner, 1);
  return piece;
}

// Copies rows of bytes with pitches `from_pitch` and `to_pitch`; false if a pitch exceeds the limit
// of the copy engine.
bool CopyRows(const OnGpu& device, const char* from, int64_t from_pitch, char* to, int64_t to_pitch,
              int64_t width, int64_t rows) {
  constexpr int64_t kMostPitch = (int64_t{1} << 31) - 1;
  if (from_pitch > kMostPitch || to_pitch > kMostPitch) return false;
  if (width == 0 || rows == 0) return true;
  MXTRAIN_CHECK_CUDA(cudaMemcpy2DAsync(to, static_cast<size_t>(to_pitch), from,
                                       static_cast<size_t>(from_pitch), static_cast<size_t>(width),
                                       static_cast<size_t>(rows), cudaMemcpyDeviceToDevice,
                                       StreamOf(device.ctx).get()));
  return true;
}

}  // namespace

void CopyFromView(const OnGpu& device, OpReqType req, const TBlob& array, const StridedView& view,
                  const TBlob& dense) {
  if (req == OpReqType::kNullOp) return;
  SwitchType(dense.type, "a copy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Launch(device, dense.Size(),
           FromView<T>{view.Collapsed(), req, array.dptr<T>(), dense.dptr<T>()});
  });
}

void CopyToView(const OnGpu& device, OpReqType req, const TBlob& dense, const StridedView& view,
                const TBlob& array) {
  if (req == OpReqType::kNullOp) return;
  SwitchType(dense.type, "a copy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Launch(device, dense.Size(),
           ToView<T>{view.Collapsed(), req, dense.dptr<T>(), array.dptr<T>()});
  });
}

void ScatterView(const OnGpu& device, OpReqType req, const TBlob& dense, const StridedView& view,
                 const TBlob& array) {
  ZeroBlob(device, req, array);
  CopyToView(device, req, dense, view, array);
}

void CopyFromWhole(const OnGpu& device, OpReqType req, const TBlob& whole, const AxisView& view,
                   int64_t begin, int64_t length, const TBlob& piece) {
  if (req == OpReqType::kNullOp) return;
  const int64_t cell = view.inner * SizeOf(whole.type);
  const bool copied = req != OpReqType::kAddTo &&
                      CopyRows(device, whole.dptr<char>() + begin * cell, view.length * cell,
                               piece.dptr<char>(), length * cell, length * cell, view.outer);
  if (!copied) CopyFromView(device, req, whole, PieceOf(view, begin, length), piece);
}

void CopyToWhole(const OnGpu& device, OpReqType req, const TBlob& piece, const AxisView& view,
                 int64_t begin, int64_t length, const TBlob& whole) {
  if (req == OpReqType::kNullOp) return;
  const int64_t cell = view.inner * SizeOf(whole.type);
  const bool copied =
      req != OpReqType::kAddTo &&
      CopyRows(device, piece.dptr<char>(), length * cell, whole.dptr<char>() + begin * cell,
               view.length * cell, length * cell, view.outer);
  if (!copied) CopyToView(device, req, piece, PieceOf(view, begin, length), whole);
}

}  // namespace mxtrain
