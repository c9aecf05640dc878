// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operator/view_loops.h"

namespace mxtrain {
namespace {

// Rows of one array become rows of another: the copy engine does it, unless rows are short or its
// limit on the distance of rows is exceeded.
bool CopyRows(const OnGpu& device, const MergedMove& move, const TBlob& from, const TBlob& to) {
  constexpr int64_t kShortRow = 64, kMostPitch = (int64_t{1} << 31) - 1;  // bytes
  const MergedMove::Axis& run = move.axes[move.kept - 1];
  if (move.kept > 2 || run.from != 1 || run.to != 1) return false;
  const int64_t size = SizeOf(to.type), width = run.dim * size;
  const char* source = from.dptr<char>() + move.from * size;
  char* target = to.dptr<char>() + move.to * size;
  cudaStream_t stream = StreamOf(device.ctx).get();
  if (move.kept == 1) {
    MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(target, source, static_cast<size_t>(width),
                                       cudaMemcpyDeviceToDevice, stream));
    return true;
  }
  const MergedMove::Axis& rows = move.axes[0];
  const int64_t from_pitch = rows.from * size, to_pitch = rows.to * size;
  if (width < kShortRow || from_pitch < width || to_pitch < width || from_pitch > kMostPitch ||
      to_pitch > kMostPitch)
    return false;
  MXTRAIN_CHECK_CUDA(cudaMemcpy2DAsync(
      target, static_cast<size_t>(to_pitch), source, static_cast<size_t>(from_pitch),
      static_cast<size_t>(width), static_cast<size_t>(rows.dim), cudaMemcpyDeviceToDevice, stream));
  return true;
}

constexpr int kTile = 32;  // elements of a tile's side
constexpr int kTileStep = cuda::kBlockThreads / kTile;

// A block of threads moves a tile of a transposition through shared memory, so that its accesses
// are contiguous in both arrays. `across` is the source's contiguous axis, `along` the target's.
template <typename Word>
__global__ void __launch_bounds__(cuda::kBlockThreads)
    TileKernel(MergedMove tiles, MergedMove::Axis across, MergedMove::Axis along, const Word* from,
               Word* to) {
  __shared__ Word tile[kTile][kTile + 1];  // the column avoids bank conflicts
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile;
  const int64_t columns_of_tiles = tiles.axes[tiles.kept - 1].dim,
                rows_of_tiles = tiles.axes[tiles.kept - 2].dim;
  for (int64_t item = blockIdx.x; item < tiles.kept_size; item += gridDim.x) {
    const MergedMove::Offsets at = tiles.Kept(item);
    const int64_t columns = along.dim - item % columns_of_tiles * kTile,
                  rows = across.dim - item / columns_of_tiles % rows_of_tiles * kTile;
    for (int k = y; k < kTile && k < columns; k += kTileStep) {
      if (x < rows) tile[k][x] = from[at.from + x * across.from + k * along.from];
    }
    __syncthreads();
    for (int k = y; k < kTile && k < rows; k += kTileStep) {
      if (x < columns) to[at.to + k * across.to + x * along.to] = tile[x][k];
    }
    __syncthreads();  // before the next tile is written
  }
}

bool CopyTiles(const OnGpu& device, const MergedMove& move, const TBlob& from, const TBlob& to) {
  const int axis = TransposedAxis(move, 1);
  if (axis < 0) return false;
  const MergedMove::Axis across = move.axes[axis], along = move.axes[move.kept - 1];
  if (across.dim < kTile / 2 || along.dim < kTile / 2) return false;  // most threads would idle
  const MergedMove tiles = TilesOf(move, axis, kTile, kTile);
  detail::SwitchWord(SizeOf(to.type), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    TileKernel<<<cuda::BlocksFor(tiles.kept_size, 1), cuda::kBlockThreads, 0,
                 StreamOf(device.ctx).get()>>>(
        tiles, across, along, static_cast<const Word*>(from.dptr<Word>()), to.dptr<Word>());
    cuda::CheckLaunch("a transposition");
  });
  return true;
}

}  // namespace

void RunMove(const OnGpu& device, const MergedMove& move, const TBlob& from, const TBlob& to,
             bool add) {
  const bool copies = !add && move.kept_size > 0 && move.summed == 0 && from.type == to.type;
  if (copies && (CopyRows(device, move, from, to) || CopyTiles(device, move, from, to))) return;
  RunMove<OnGpu>(device, move, from, to, add);
}

void RunFill(const OnGpu& device, const MergedMove& move, double value, const TBlob& to, bool add) {
  RunFill<OnGpu>(device, move, value, to, add);
}

}  // namespace mxtrain
