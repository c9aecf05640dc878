// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pooling: the maximum, mean, sum or p-norm over windows that slide over images [N, C, H, W]. The
// kernel has one, two or three axes, and with them all arrays: sequences [N, C, W], images, volumes
// [N, C, D, H, W].
//
// The maximum of a window with a NaN is NaN. H' = (H + 2 pad - kernel) / stride + 1, rounded down
// ("valid") or up ("full": the last windows may extend beyond the far edge); H' = ceil(H / stride)
// for "same", MXNet's word for the maximum over sequences: window i begins at element i stride. If
// `pad` is the word same (operator/window.h), H' = ceil(H / stride), and padding does not count in
// a mean.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct PoolingParam : Parameter<PoolingParam> {
  enum Type { kMax, kAvg, kSum, kLp };
  enum Convention { kValid, kFull, kSame };
  TShape kernel, stride, pad;
  bool same_pad = false;  // then pad depends on the data: AxesOf
  int pool_type, pooling_convention;
  bool global_pool;
  std::optional<int> p_value, layout;
  std::optional<bool> count_include_pad;  // unset: true
  static void Declare(Fields<PoolingParam>& f);
};

// One axis of a pooling: the positions of the windows. Cells are counted from the first real one.
struct PoolingAxis {
  int64_t in, out, kernel, stride, pad;

  MXTRAIN_HD int64_t Start(int64_t window) const { return window * stride - pad; }
  // Real cells of a window: [First, Last).
  MXTRAIN_HD int64_t First(int64_t window) const { return Start(window) < 0 ? 0 : Start(window); }
  MXTRAIN_HD int64_t Last(int64_t window) const {
    return Start(window) + kernel < in ? Start(window) + kernel : in;
  }
  MXTRAIN_HD int64_t RealCells(int64_t window) const { return Last(window) - First(window); }
  // Cells of a window including padding, but not beyond it.
  MXTRAIN_HD int64_t PaddedCells(int64_t window) const {
    return (Start(window) + kernel < in + pad ? Start(window) + kernel : in + pad) - Start(window);
  }
  // Windows that may contain a real cell: [FirstWindow, LastWindow).
  MXTRAIN_HD int64_t FirstWindow(int64_t cell) const {
    return cell + pad < kernel ? 0 : (cell + pad - kernel) / stride + 1;
  }
  MXTRAIN_HD int64_t LastWindow(int64_t cell) const {
    return (cell + pad) / stride + 1 < out ? (cell + pad) / stride + 1 : out;
  }
  // Cells of the last window beyond the far edge.
  MXTRAIN_HD int64_t Overhang() const { return Start(out - 1) + kernel - in; }
};

class PoolingProperty final : public PropertyWithParam<PoolingParam> {
 public:
  std::string TypeString() const override { return "Pooling"; }
  void Init(const Kwargs& kwargs) override;
  Kwargs GetParams() const override;
  std::vector<FieldInfo> DescribeParams() const override;
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override {
    return "maximum, mean, sum or p-norm over a sliding window";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;

 protected:
  void Check() override;
};

// The axes of a pooling: depth, height and width. Sequences have one row, and images one layer.
struct PoolingAxes {
  static constexpr PoolingAxis kUnit{1, 1, 1, 1, 0};
  PoolingAxis d = kUnit, h = kUnit, w = kUnit;

  MXTRAIN_HD int64_t cells() const { return d.in * h.in * w.in; }  // of an image
  MXTRAIN_HD int64_t windows() const { return d.out * h.out * w.out; }
  MXTRAIN_HD int64_t window() const { return d.kernel * h.kernel * w.kernel; }  // cells
};
MXTRAIN_API PoolingAxes AxesOf(const PoolingParam& param, const TShape& data, const TShape& output);

// Cells of window (z, y, x): including padding, or only the real ones. At least 1: the mean of a
// window without a real cell is its sum, 0.
MXTRAIN_HD inline int64_t PoolingCells(bool with_padding, const PoolingAxes& a, int64_t z,
                                       int64_t y, int64_t x) {
  const int64_t cells = with_padding ? a.d.PaddedCells(z) * a.h.PaddedCells(y) * a.w.PaddedCells(x)
                                     : a.d.RealCells(z) * a.h.RealCells(y) * a.w.RealCells(x);
  return cells > 1 ? cells : 1;
}

// Whether a cell replaces the current maximum: the first of ties stays, and a NaN is final.
template <typename A>
MXTRAIN_HD bool Beats(A cell, A best) {
  return cell > best || cell != cell;
}

// The divisor of the sum of window (y, x) of images: 1 for sum; for avg the number of cells,
// including padding unless count_include_pad is false.
int64_t PoolingDivisor(const PoolingParam& param, const PoolingAxes& axes, int64_t y, int64_t x);

}  // namespace mxtrain
