// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transposed convolution of bilinear UpSampling: every channel of images [N, C, H, W] has a
// kernel [k, k] of its own; stride = scale, k = 2 scale - scale % 2, padding = ceil((scale - 1) /
// 2), so that the output is [N, C, scale H, scale W]:
//
//   out[y, x] = sum over i, j of data[i, j] weight[y + pad - i scale, x + pad - j scale]
//
// At most two rows and two columns of the data reach an output element. This file has an element or
// a sum per team, for GPUs; depthwise_rows.h the loops of the CPU.
#include "mxtrain/operator/rows.h"

namespace mxtrain::upsampling {

struct Enlargement {
  int64_t images, channels, height, width, scale;

  Enlargement(const TShape& data, int64_t factor)
      : images(data[0]), channels(data[1]), height(data[2]), width(data[3]), scale(factor) {}

  MXTRAIN_HD int64_t kernel() const { return 2 * scale - scale % 2; }
  MXTRAIN_HD int64_t pad() const { return scale / 2; }  // ceil((scale - 1) / 2)
  MXTRAIN_HD int64_t cells() const { return height * width; }
  MXTRAIN_HD int64_t out_height() const { return height * scale; }
  MXTRAIN_HD int64_t out_width() const { return width * scale; }
  MXTRAIN_HD int64_t out_cells() const { return out_height() * out_width(); }
  MXTRAIN_HD int64_t planes() const { return images * channels; }
  // The input coordinates [First, Last) that reach output coordinate o.
  MXTRAIN_HD int64_t First(int64_t o) const {
    return o + pad() < kernel() ? 0 : (o + pad() - kernel()) / scale + 1;
  }
  MXTRAIN_HD int64_t Last(int64_t o, int64_t length) const {
    const int64_t last = (o + pad()) / scale + 1;
    return last < length ? last : length;
  }
};

template <typename T>
struct OutputElement {
  using A = AccumulatorOf<T>;
  Enlargement shape;
  const T *data, *weight;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const int64_t x = at % shape.out_width(), row = at / shape.out_width(),
                  y = row % shape.out_height(), plane = row / shape.out_height(),
                  channel = plane % shape.channels, k = shape.kernel();
    const T *image = data + plane * shape.cells(), *taps = weight + channel * k * k;
    const int64_t last_row = shape.Last(y, shape.height), last = shape.Last(x, shape.width);
    A sum = 0;
    for (int64_t i = shape.First(y); i < last_row; ++i) {
      const T* taps_of_row = taps + (y + shape.pad() - i * shape.scale) * k;
      for (int64_t j = shape.First(x); j < last; ++j)
        sum += A(image[i * shape.width + j]) * A(taps_of_row[x + shape.pad() - j * shape.scale]);
    }
    Assign(req, out, at, sum);
  }
};

template <typename T>
struct DataGradient {
  using A = AccumulatorOf<T>;
  Enlargement shape;
  const T *head, *weight;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const int64_t j = at % shape.width, row = at / shape.width, i = row % shape.height,
                  plane = row / shape.height, channel = plane % shape.channels, k = shape.kernel();
    const T *image = head + plane * shape.out_cells(), *taps = weight + channel * k * k;
    const int64_t top = i * shape.scale - shape.pad(), left = j * shape.scale - shape.pad();
    A sum = 0;
    for (int64_t v = 0; v < k; ++v) {
      const int64_t y = top + v;
      if (y < 0 || y >= shape.out_height()) continue;
      for (int64_t u = 0; u < k; ++u) {
        const int64_t x = left + u;
        if (x < 0 || x >= shape.out_width()) continue;
        sum += A(image[y * shape.out_width() + x]) * A(taps[v * k + u]);
      }
    }
    Assign(req, out, at, sum);
  }
};

// A row is one element of the weight.
template <typename T>
struct WeightGradient {
  using A = AccumulatorOf<T>;
  Enlargement shape;
  const T *head, *data;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t at) const {
    const int64_t k = shape.kernel(), u = at % k, v = at / k % k, channel = at / (k * k);
    A sum = 0;
    for (int64_t t = team.rank(); t < shape.images * shape.cells(); t += team.size()) {
      const int64_t plane = t / shape.cells() * shape.channels + channel, cell = t % shape.cells(),
                    i = cell / shape.width, j = cell % shape.width;
      const int64_t y = i * shape.scale - shape.pad() + v, x = j * shape.scale - shape.pad() + u;
      if (y < 0 || y >= shape.out_height() || x < 0 || x >= shape.out_width()) continue;
      sum += A(data[plane * shape.cells() + cell]) *
             A(head[plane * shape.out_cells() + y * shape.out_width() + x]);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, at, sum);
  }
};

}  // namespace mxtrain::upsampling
