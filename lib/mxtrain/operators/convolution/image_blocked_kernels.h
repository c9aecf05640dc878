// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops of a convolution over blocked images, [N / b, C, H, W, b]: a vector holds the same cell of
// b images, so vectors are full with any number of channels. Stride 1, dilation 1.
//
// Each function runs on the calling thread and writes disjoint outputs: callers divide the work.
#include <cstdint>

namespace mxtrain::image_blocked {

// Images of a block, which fill a vector.
int64_t Width();
// Filters that CorrelateRow processes at a time: the tile that wastes least of `filters`.
int64_t TileOf(int64_t filters);

//   out[f, y, x, n] = bias[f] + sum over c, i, j of
//                     source[c, y + i - shift, x + j - shift, n] * weight[f, c, i, j],
// zero outside the source. Forward: shift = pad. Gradient of the data: channels and filters
// exchanged, filters rotated by 180 degrees, shift = kernel - 1 - pad.
struct Correlation {
  const float* source;
  int64_t channels, height, width;
  // [tiles, channels, kernel, kernel, tile]: filters of a tile innermost, zeros after the last one.
  const float* packed;
  const float* bias;  // [filters], or null
  float* out;
  int64_t filters, tile, out_height, out_width;
  int64_t kernel[2], shift[2];
  bool accumulate;  // out += ...
  float low, high;  // bounds of out, applied last; NaN stays NaN
};
inline constexpr int64_t kBlocksAtATime = 2;
// Row y of the outputs of one tile, for `blocks` (1 or 2) blocks of images starting at `block`.
void CorrelateRow(const Correlation& c, int64_t tile, int64_t y, int64_t block, int64_t blocks);

//   sums[f, i, j] = sum over y, x, n of
//                   head[first + f, y, x, n] * image[channel, y + i - pad, x + j - pad, n].
struct WeightGradient {
  const float *image, *head;
  int64_t blocks, channels, filters, height, width, out_height, out_width;
  int64_t kernel[2], pad[2];
};
inline constexpr int64_t kMaxWindow = 64;  // cells of a window
// Filters that GradientOf processes at a time: this many, or one.
int64_t GradientTile();
void GradientOf(const WeightGradient& g, int64_t channel, int64_t first, int64_t filters,
                float* sums);

// Sum of n floats, a multiple of Width().
float SumOf(const float* data, int64_t n);

}  // namespace mxtrain::image_blocked
