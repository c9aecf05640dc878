// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transposed convolution of depthwise_transposed.h on the CPU, plane by plane in loops over
// rows. Rows of planes are copied with zeros before and after them, so that the loops have no
// edges: a row of data has one more cell on either side, and a row of outputs is the `width + 1`
// times `scale` elements from `pad` before the first one. Kernel rows are 2 scale elements apart;
// if the scale is odd, the last of them is no element of the kernel. Cell j of the data reaches
// elements j scale ... j scale + k - 1 of a padded row of outputs.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/upsampling/depthwise_transposed.h"

namespace mxtrain::upsampling {

// kScale: the scale as a constant, or 0 for any.

// A padded row of outputs += what a row of `cells` data gives it. `data` has a cell more on either
// side.
template <int kScale, typename A>
MXTRAIN_SIMD void SpreadRow(int64_t cells, int64_t scale, const A* data, const A* taps, A* to) {
  if constexpr (kScale != 0) scale = kScale;
  const int64_t both = scale - scale % 2;  // elements that two cells reach
#pragma GCC ivdep
  for (int64_t q = 0; q <= cells; ++q) {
#pragma GCC ivdep
    for (int64_t f = 0; f < both; ++f)
      to[q * scale + f] += data[q + 1] * taps[f] + data[q] * taps[scale + f];
    if (both < scale) to[q * scale + both] += data[q + 1] * taps[both];
  }
}

// A row of data gradients += what a padded row of head gradients gives it.
template <int kScale, typename A>
MXTRAIN_SIMD void GatherRow(int64_t cells, int64_t scale, const A* head, const A* taps, A* to) {
  if constexpr (kScale != 0) scale = kScale;
  const int64_t kernel = 2 * scale - scale % 2;
#pragma GCC ivdep
  for (int64_t j = 0; j < cells; ++j) {
    A sum = 0;
    for (int64_t f = 0; f < kernel; ++f) sum += head[j * scale + f] * taps[f];
    to[j] += sum;
  }
}

// sums[f] += the gradient of kernel element f from a row of data and a padded row of head
// gradients.
template <int kScale, typename A>
MXTRAIN_SIMD void CorrelateRow(int64_t cells, int64_t scale, const A* data, const A* head,
                               double* sums) {
  if constexpr (kScale != 0) {
    A parts[2 * kScale] = {};
    for (int64_t j = 0; j < cells; ++j) {
      for (int64_t f = 0; f < 2 * kScale; ++f) parts[f] += data[j] * head[j * kScale + f];
    }
    for (int64_t f = 0; f < 2 * kScale; ++f) sums[f] += static_cast<double>(parts[f]);
  } else {
    for (int64_t f = 0; f < 2 * scale; ++f) {
      A sum = 0;
      for (int64_t j = 0; j < cells; ++j) sum += data[j] * head[j * scale + f];
      sums[f] += static_cast<double>(sum);
    }
  }
}

// f(scale as a constant, or 0 for any).
template <typename F>
void SwitchScale(int64_t scale, F f) {
  if (scale == 2) return f(std::integral_constant<int, 2>());
  if (scale == 4) return f(std::integral_constant<int, 4>());
  f(std::integral_constant<int, 0>());
}

// One thread's loops and scratch.
template <typename T>
class DepthwiseRows {
 public:
  using A = AccumulatorOf<T>;

  // Bytes of scratch for sums of `element` bytes. Forward needs one row of the output at a time,
  // backward all of them.
  static int64_t Bytes(const Enlargement& shape, int64_t element, bool backward) {
    const int64_t rows = backward ? shape.out_height() : 1;
    const int64_t elements = TapsSize(shape) + shape.height * DataRow(shape) + rows * OutRow(shape);
    return RoundUp(TapsSize(shape) * static_cast<int64_t>(sizeof(double)) + elements * element,
                   kBufferAlignment);
  }

  DepthwiseRows(const Enlargement& shape, void* scratch)
      : shape_(shape),
        totals_(static_cast<double*>(scratch)),
        taps_(reinterpret_cast<A*>(totals_ + TapsSize(shape))),
        data_(taps_ + TapsSize(shape)),
        out_(data_ + shape.height * DataRow(shape)) {}

  void Forward(int64_t plane, const T* data, const T* weight, bool add, T* out) const {
    LoadTaps(weight + plane % shape_.channels * shape_.kernel() * shape_.kernel());
    LoadData(data + plane * shape_.cells());
    for (int64_t y = 0; y < shape_.out_height(); ++y) {
      std::fill_n(out_, OutRow(shape_), A(0));
      const int64_t last = shape_.Last(y, shape_.height);
      for (int64_t i = shape_.First(y); i < last; ++i) {
        const A* taps = taps_ + (y + shape_.pad() - i * shape_.scale) * 2 * shape_.scale;
        SwitchScale(shape_.scale, [&](auto scale) {
          SpreadRow<scale()>(shape_.width, shape_.scale, data_ + i * DataRow(shape_), taps, out_);
        });
      }
      Store(out_ + shape_.pad(), shape_.out_width(), add,
            out + plane * shape_.out_cells() + y * shape_.out_width());
    }
  }

  void BackwardData(int64_t plane, const T* head, const T* weight, bool add, T* gradient) const {
    LoadTaps(weight + plane % shape_.channels * shape_.kernel() * shape_.kernel());
    LoadHead(head + plane * shape_.out_cells());
    for (int64_t i = 0; i < shape_.height; ++i) {
      std::fill_n(data_, shape_.width, A(0));
      ForKernelRows(i, [&](int64_t v, const A* row) {
        SwitchScale(shape_.scale, [&](auto scale) {
          GatherRow<scale()>(shape_.width, shape_.scale, row, taps_ + v * 2 * shape_.scale, data_);
        });
      });
      Store(data_, shape_.width, add, gradient + plane * shape_.cells() + i * shape_.width);
    }
  }

  // Of one channel, over all images.
  void BackwardWeight(int64_t channel, const T* head, const T* data, OpReqType req,
                      T* gradient) const {
    std::fill_n(totals_, TapsSize(shape_), 0.0);
    for (int64_t image = 0; image < shape_.images; ++image) {
      const int64_t plane = image * shape_.channels + channel;
      LoadHead(head + plane * shape_.out_cells());
      LoadData(data + plane * shape_.cells());
      for (int64_t i = 0; i < shape_.height; ++i) {
        ForKernelRows(i, [&](int64_t v, const A* row) {
          SwitchScale(shape_.scale, [&](auto scale) {
            CorrelateRow<scale()>(shape_.width, shape_.scale, data_ + i * DataRow(shape_) + 1, row,
                                  totals_ + v * 2 * shape_.scale);
          });
        });
      }
    }
    const int64_t k = shape_.kernel();
    for (int64_t v = 0; v < k; ++v) {
      for (int64_t u = 0; u < k; ++u)
        Assign(req, gradient, (channel * k + v) * k + u, totals_[v * 2 * shape_.scale + u]);
    }
  }

 private:
  static int64_t TapsSize(const Enlargement& shape) { return shape.kernel() * 2 * shape.scale; }
  static int64_t DataRow(const Enlargement& shape) { return shape.width + 2; }
  static int64_t OutRow(const Enlargement& shape) { return (shape.width + 1) * shape.scale; }

  // f(v, padded row of head gradients) for every row v of the kernel that reaches one from row i of
  // the data.
  template <typename F>
  void ForKernelRows(int64_t i, const F& f) const {
    const int64_t top = i * shape_.scale - shape_.pad();
    const int64_t last = std::min(shape_.kernel(), shape_.out_height() - top);
    for (int64_t v = std::max<int64_t>(-top, 0); v < last; ++v)
      f(v, out_ + (top + v) * OutRow(shape_));
  }

  void LoadTaps(const T* weight) const {
    const int64_t k = shape_.kernel(), row = 2 * shape_.scale;
    for (int64_t v = 0; v < k; ++v) {
      for (int64_t u = 0; u < k; ++u) taps_[v * row + u] = static_cast<A>(weight[v * k + u]);
    }
  }
  void LoadData(const T* plane) const {
    for (int64_t i = 0; i < shape_.height; ++i)
      LoadPadded(plane + i * shape_.width, shape_.width, 1, DataRow(shape_),
                 data_ + i * DataRow(shape_));
  }
  void LoadHead(const T* plane) const {
    for (int64_t y = 0; y < shape_.out_height(); ++y)
      LoadPadded(plane + y * shape_.out_width(), shape_.out_width(), shape_.pad(), OutRow(shape_),
                 out_ + y * OutRow(shape_));
  }
  static void LoadPadded(const T* from, int64_t n, int64_t before, int64_t whole, A* to) {
    std::fill_n(to, before, A(0));
    for (int64_t x = 0; x < n; ++x) to[before + x] = static_cast<A>(from[x]);
    std::fill_n(to + before + n, whole - before - n, A(0));
  }
  static void Store(const A* from, int64_t n, bool add, T* to) {
    const OpReqType req = add ? OpReqType::kAddTo : OpReqType::kWriteTo;
    for (int64_t x = 0; x < n; ++x) Assign(req, to, x, from[x]);
  }

  Enlargement shape_;
  double* totals_;  // [k, 2 scale]
  A* taps_;         // [k, 2 scale]
  A* data_;         // [height, width + 2]
  A* out_;          // [out_height, (width + 1) scale]
};

}  // namespace mxtrain::upsampling
