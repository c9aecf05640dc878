// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pooling: the maximum, mean, sum or p-norm over windows that slide over images [N, C, H, W].
//
// The maximum of a window with a NaN is NaN. H' = (H + 2 pad - kernel) / stride + 1, rounded down
// ("valid") or up ("full": the last windows may extend beyond the far edge).
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct PoolingParam : Parameter<PoolingParam> {
  enum Type { kMax, kAvg, kSum, kLp };
  enum Convention { kValid, kFull };
  TShape kernel, stride, pad;
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

// `axis` 0: height, 1: width.
MXTRAIN_API PoolingAxis AxisOf(const PoolingParam& param, const TShape& data, const TShape& output,
                               int axis);

// Cells of window (y, x): including padding, or only the real ones. At least 1: the mean of a
// window without a real cell is its sum, 0.
MXTRAIN_HD inline int64_t PoolingCells(bool with_padding, const PoolingAxis& h,
                                       const PoolingAxis& w, int64_t y, int64_t x) {
  const int64_t cells = with_padding ? h.PaddedCells(y) * w.PaddedCells(x)
                                     : (h.Last(y) - h.First(y)) * (w.Last(x) - w.First(x));
  return cells > 1 ? cells : 1;
}

// Whether a cell replaces the current maximum: the first of ties stays, and a NaN is final.
template <typename A>
MXTRAIN_HD bool Beats(A cell, A best) {
  return cell > best || cell != cell;
}

// The divisor of the sum of window (y, x): 1 for sum; for avg the number of cells, including
// padding unless count_include_pad is false.
int64_t PoolingDivisor(const PoolingParam& param, const PoolingAxis& h, const PoolingAxis& w,
                       int64_t y, int64_t x);

}  // namespace mxtrain
