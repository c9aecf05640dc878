// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops of Winograd's convolution F(4x4, 3x3): images in blocks of channels, [N, C / b, H, W, b],
// 3x3 windows with stride 1.
//
// An image is divided into tiles of 4x4 outputs. The 6x6 patch under a tile, the filter and the
// product are values of polynomials at six points in either direction: 36 cells, in each of which
// the convolution is a matrix product [filters, channels] x [channels, tiles]. 36 products replace
// 144.
//
// The points are 0, +-5/8, +-3/2 and infinity (Barabasz et al., arXiv 1803.10986, explain why they
// round less than 0, +-1, +-2). Sums over channels are formed in runs of kRun channels, which are
// then added: rounding errors stay below four times those of the plain sum.
//
// Each function runs on the calling thread and writes disjoint outputs: callers divide the work.
// The summation order of an element does not depend on this division.
#include <cstdint>
#include <limits>

#include "mxtrain/base/math.h"

namespace mxtrain::winograd {

inline constexpr int64_t kTile = 4, kWindow = 3, kPatch = kTile + kWindow - 1,
                         kCells = kPatch * kPatch, kTaps = kWindow * kWindow;
inline constexpr int64_t kRun = 32;   // channels that are summed in registers
inline constexpr int64_t kGroup = 2;  // blocks of filters whose packed weights are adjacent
inline constexpr int64_t kMaxBlock = 16;

// Channels of a block, which fill a vector; 0 if vectors are too short for these loops.
int64_t BlockSize();

// Floats from one cell to the next in an array of `floats` per cell: an odd number of cache lines.
// At a power of two the 36 locations that a transform writes would share a few cache sets.
constexpr int64_t CellStride(int64_t floats) {
  constexpr int64_t kLine = 16;
  return (CeilDivide(floats, kLine) | 1) * kLine;
}

// The epilogue of sums: out = bias + sum [+ out], clamped to low .. high. NaN stays NaN.
struct Ending {
  const float* bias = nullptr;  // [filters], or null
  bool accumulate = false;
  float low = -std::numeric_limits<float>::infinity(),
        high = std::numeric_limits<float>::infinity();
};

//   out[n, f, y, x] = bias[f] + sum over c, i, j of
//                     source[n, c, y + i - pad, x + j - pad] * weight[f, c, i, j],
// zero outside the source.
struct Correlation {
  const float* source;
  // [36][filter group][channel][block of the group][b], cells CellStride(filters * channels) apart.
  const float* packed;
  float* out;
  int64_t channel_blocks, height, width;
  int64_t filters, filter_blocks, out_height, out_width;
  int64_t pad[2];
  int64_t rows, columns;  // tiles of an image
  int64_t capacity;       // tiles that the arrays of Piece can hold
  Ending ending;

  int64_t channels_stored() const { return channel_blocks * BlockSize(); }
  int64_t filters_stored() const { return filter_blocks * BlockSize(); }
};

// A run of tiles, counted over all images, and the arrays for their 36 cells.
struct Piece {
  int64_t first, count;
  float* patches;   // [36][channel block][capacity][b]
  float* products;  // [36][filter block][capacity][b]
};

// The patches under tiles [begin, end) of the piece, of channel block `block`.
void TransformPatches(const Correlation& c, const Piece& piece, int64_t block, int64_t begin,
                      int64_t end);
// Products of filter group `group` in cell `cell`.
void Multiply(const Correlation& c, const Piece& piece, int64_t cell, int64_t group);
// Outputs under tiles [begin, end) of the piece, of filter block `block`.
void TransformProducts(const Correlation& c, const Piece& piece, int64_t block, int64_t begin,
                       int64_t end);

// Packs the weights of `b` filters and `b` channels. Forward: `weights` is [3, 3, channel, filter].
// `turned`, for the gradient of the data: filters and channels are exchanged, [3, 3, filter,
// channel], and windows rotated by 180 degrees.
struct Packing {
  int64_t filter_blocks, channel_blocks;
  bool turned;
};
void PackBlock(const Packing& p, const float* weights, int64_t filter_block, int64_t channel_block,
               float* packed);

}  // namespace mxtrain::winograd
