// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cuda/internal/place_map.h"
#include "mxtrain/device/cuda/internal/reorder.h"
#include "mxtrain/device/cuda/launch.cuh"

namespace mxtrain::cuda {
namespace {

constexpr int kTile = 32;     // of a transposition, elements each way
constexpr int kTileRows = 8;  // threads of a block in the second direction
constexpr int64_t kMaxGridZ = 65535;

// Any layout to any other: one target element per step.
template <typename From, typename To>
struct PlaceBody {
  PlaceMap from_map, to_map;
  const From* from;
  To* to;
  MXTRAIN_HD void operator()(int64_t place) const {
    int64_t index[TShape::kMaxDims];
    to[place] =
        to_map.IndexAt(place, index) ? static_cast<To>(from[from_map.PlaceOf(index)]) : To{};
  }
};

// Adjacent elements that are loaded or stored at once.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Adjacent {
  T v[kWidth];
};

// Some adjacent elements per step, 16 bytes of the narrower type; the last step takes what is left.
template <typename From, typename To>
struct ConvertBody {
  static constexpr int kWidth = 16 / (sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
  int64_t n;
  const From* from;
  To* to;

  int64_t steps() const { return CeilDivide(n, kWidth); }
  static bool Takes(const void* from, const void* to) {
    return reinterpret_cast<uintptr_t>(from) % alignof(Adjacent<From, kWidth>) == 0 &&
           reinterpret_cast<uintptr_t>(to) % alignof(Adjacent<To, kWidth>) == 0;
  }
  MXTRAIN_HD void operator()(int64_t step) const {
    const int64_t at = step * kWidth;
    if (at + kWidth > n) {
      for (int64_t i = at; i < n; ++i) to[i] = static_cast<To>(from[i]);
      return;
    }
    const auto source = *reinterpret_cast<const Adjacent<From, kWidth>*>(from + at);
    Adjacent<To, kWidth> target;
    for (int k = 0; k < kWidth; ++k) target.v[k] = static_cast<To>(source.v[k]);
    *reinterpret_cast<Adjacent<To, kWidth>*>(to + at) = target;
  }
};

// The same for arrays that begin elsewhere.
template <typename From, typename To>
struct ConvertOne {
  const From* from;
  To* to;
  MXTRAIN_HD void operator()(int64_t i) const { to[i] = static_cast<To>(from[i]); }
};

// [batch, rows, columns] -> [batch, columns, rows], through a tile that is read and written along
// rows.
template <typename From, typename To>
__global__ void __launch_bounds__(kTile* kTileRows)
    TransposeKernel(int64_t batches, int64_t rows, int64_t columns, const From* from, To* to) {
  __shared__ To tile[kTile][kTile + 1];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile,
                column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    const From* source = from + batch * rows * columns;
    To* target = to + batch * rows * columns;
    for (int r = threadIdx.y; r < kTile; r += kTileRows) {
      const int64_t row = row0 + r, column = column0 + threadIdx.x;
      if (row < rows && column < columns)
        tile[r][threadIdx.x] = static_cast<To>(source[row * columns + column]);
    }
    __syncthreads();
    for (int c = threadIdx.y; c < kTile; c += kTileRows) {
      const int64_t column = column0 + c, row = row0 + threadIdx.x;
      if (row < rows && column < columns) target[column * rows + row] = tile[threadIdx.x][c];
    }
    __syncthreads();
  }
}

// The same for few rows, such as images with planar channels: tiles would be nearly empty.
constexpr int64_t kFewRows = 8;
// Index: a type of all numbers of columns; a GPU divides 32 bits several times faster than 64.
template <typename From, typename To, typename Index>
struct InterleaveBody {
  int64_t rows, columns;
  const From* from;
  To* to;
  MXTRAIN_HD void operator()(int64_t i) const {  // a column of one matrix of the batch
    const auto width = static_cast<Index>(columns), all = static_cast<Index>(i);
    const auto batch = static_cast<int64_t>(all / width), column = i - batch * columns;
    for (int64_t row = 0; row < rows; ++row)
      to[i * rows + row] = static_cast<To>(from[(batch * rows + row) * columns + column]);
  }
};

template <typename From, typename To>
void Transpose(CudaStream& stream, int64_t batches, int64_t rows, int64_t columns, const From* from,
               To* to) {
  if (rows <= kFewRows && batches * columns <= UINT32_MAX)
    return Loop(stream, batches * columns,
                InterleaveBody<From, To, uint32_t>{rows, columns, from, to});
  if (rows <= kFewRows)
    return Loop(stream, batches * columns,
                InterleaveBody<From, To, int64_t>{rows, columns, from, to});
  const dim3 grid(static_cast<unsigned>(CeilDivide(columns, kTile)),
                  static_cast<unsigned>(CeilDivide(rows, kTile)),
                  static_cast<unsigned>(std::min(batches, kMaxGridZ)));
  TransposeKernel<<<grid, dim3(kTile, kTileRows), 0, stream.get()>>>(batches, rows, columns, from,
                                                                     to);
  CheckLaunch("a transposition");
}

// Too many rows for the second grid dimension take the slow path.
bool FitsGrid(int64_t rows) {
  return CeilDivide(rows, kTile) <= kMaxGridZ;
}

template <typename From, typename To>
void ReorderAs(CudaStream& stream, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) {
  const auto* source = static_cast<const From*>(src);
  auto* target = static_cast<To*>(dst);
  const TShape& shape = from.shape;
  if (shape.Size() == 0) return;
  const int64_t stored = to.Bytes() / SizeOf(to.type);
  if (from.layout == to.layout) {
    const ConvertBody<From, To> body{stored, source, target};
    if (body.Takes(source, target)) return Loop(stream, body.steps(), body);
    return Loop(stream, stored, ConvertOne<From, To>{source, target});
  }
  const int64_t pixels = shape.ndim() > 2 ? shape.Product(2, shape.ndim()) : 1;
  if (from.layout.plain() && ChannelsLast(to.layout) && FitsGrid(shape[1])) {
    return Transpose(stream, shape[0], shape[1], pixels, source, target);
  }
  if (ChannelsLast(from.layout) && to.layout.plain() && FitsGrid(pixels)) {
    return Transpose(stream, shape[0], pixels, shape[1], source, target);
  }
  Loop(stream, stored, PlaceBody<From, To>{PlaceMap(from), PlaceMap(to), source, target});
}

[[noreturn]] void Refuse(const TensorSpec& from, const TensorSpec& to) {
  Throw(ErrorKind::kBug, "the GPU cannot reorder {} {} {} to {} {} {}", NameOf(from.type),
        from.shape.ToString(), from.layout.Name(), NameOf(to.type), to.shape.ToString(),
        to.layout.Name());
}

// Elements that are only moved are treated as integers of their width.
void MoveElements(CudaStream& stream, const TensorSpec& from, const void* src, const TensorSpec& to,
                  void* dst) {
  switch (SizeOf(from.type)) {
    case 1:
      return ReorderAs<uint8_t, uint8_t>(stream, from, src, to, dst);
    case 2:
      return ReorderAs<uint16_t, uint16_t>(stream, from, src, to, dst);
    case 4:
      return ReorderAs<uint32_t, uint32_t>(stream, from, src, to, dst);
    case 8:
      return ReorderAs<uint64_t, uint64_t>(stream, from, src, to, dst);
    default:
      Refuse(from, to);
  }
}

}  // namespace

void Reorder(CudaStream& stream, const TensorSpec& from, const void* src, const TensorSpec& to,
             void* dst) {
  if (from.shape != to.shape) Refuse(from, to);
  if (from.type == to.type && from.layout == to.layout) {
    MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(dst, src, static_cast<size_t>(from.Bytes()),
                                       cudaMemcpyDeviceToDevice, stream.get()));
    return;
  }
  if (from.type == to.type) return MoveElements(stream, from, src, to, dst);
  if (from.type == DType::kFloat32 && to.type == DType::kBfloat16)
    return ReorderAs<float, bfloat16>(stream, from, src, to, dst);
  if (from.type == DType::kFloat32 && to.type == DType::kFloat16)
    return ReorderAs<float, float16>(stream, from, src, to, dst);
  if (from.type == DType::kBfloat16 && to.type == DType::kFloat32)
    return ReorderAs<bfloat16, float>(stream, from, src, to, dst);
  if (from.type == DType::kFloat16 && to.type == DType::kFloat32)
    return ReorderAs<float16, float>(stream, from, src, to, dst);
  Refuse(from, to);
}

}  // namespace mxtrain::cuda
