// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops of a convolution in groups of 1 (depthwise), 2, 4 or 8 channels, with as many filters: a
// vector holds the same cell of Width() neighbouring channels, whole groups of them. Windows,
// strides and dilations of any size; images in blocks of channels or channels last, told by their
// steps.
//
// T is the storage type of the images, float or bfloat16; weights, sums and their gradients are
// float. Each function runs on the calling thread and writes disjoint outputs: callers divide the
// work.
#include <cstdint>
#include <vector>

#include "mxtrain/base/dtype.h"

namespace mxtrain::grouped {

// Channels of a vector.
int64_t Width();
inline constexpr int64_t kMostChannels = 8;  // of a group

// A tap of the window along one axis, for some results t = 0, 1, ... of that axis: tap `cell` of
// the window reads source index t * source_step + offset, which is inside the source for t in
// [first, last).
struct Tap {
  int64_t cell, offset, first, last;
};

// Results of one axis at first, first + step, ... (`count` of them), which all see the same taps.
struct Results {
  int64_t first, step, count, source_step;
  std::vector<Tap> taps;
  int64_t inner_first, inner_last;  // where every tap is inside the source
};

// The numbers of a convolution along one axis.
struct Axis {
  int64_t in, out, kernel, stride, dilate, pad;
};
// Of the output of a forward pass: all see the same taps.
Results ForwardResults(const Axis& axis);
// Of the gradient of the data, which gathers: an entry for each remainder of index / stride that
// occurs.
std::vector<Results> GradientResults(const Axis& axis);

// Images of one block of channels: elements from row to row, and from cell to cell of a row.
struct Steps {
  int64_t row, cell;
};

template <typename T>
struct Line {
  const T* source;  // first cell of the image and block
  Steps source_steps;
  // [kernel rows, kernel columns, group, Width()]: what result channel l of the vector takes of
  // source channel k of its group.
  const float* weight;
  int64_t kernel_width, group;
  T* out;  // first cell of the row of results
  int64_t out_step;
  const float* bias;  // [Width()], or null
  bool accumulate;    // out += ...
  float low, high;    // bounds of out, applied last; NaN stays NaN
};

//   sums[i, j, k, channel] += sum over y, x of head[y, x, channel] * image[channel k of its group,
//                             under tap i, j]
// for one image and block. `rows` and `columns` are those of the forward pass.
template <typename T>
struct WeightGradient {
  const T *image, *head;
  Steps image_steps, head_steps;
  int64_t kernel_width, group;
  float* sums;  // [kernel rows, kernel columns, group, Width()]
};

template <typename T>
struct Kernels {
  // Result `y` of `rows`, at all results of `columns`.
  void (*convolve)(const Line<T>& line, const Results& rows, int64_t y, const Results& columns);
  void (*add_weights)(const WeightGradient<T>& g, const Results& rows, const Results& columns);
  // sums[channel] += sum over the cells of an image of `rows` x `columns` cells.
  void (*add_cells)(const T* image, const Steps& steps, int64_t rows, int64_t columns, float* sums);
};
// For the best instruction set of the machine.
template <typename T>
const Kernels<T>& KernelsOf();

}  // namespace mxtrain::grouped
