// SPDX-License-Identifier: Apache-2.0
#pragma once
// softmax_cross_entropy(data [N, K], label [N]) = the sum over rows of
// -log(max(softmax(row)[label], 1e-8)), of shape [1]. Its gradient is (softmax - onehot) times the
// head gradient; labels have none. A label out of range throws kData on the CPU and makes the
// result NaN on the GPU. Written once for both devices: Device is OnCpu or OnGpu.
#include <cmath>
#include <limits>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::softmax_cross_entropy {

inline constexpr double kSmallestProbability = 1e-8;

// A row's largest element, and the sum of exp(x - largest).
struct RowSum {
  double largest, sum;
};
template <typename T, typename Team>
MXTRAIN_HD RowSum SumOfRow(const Team& team, const T* row, int64_t k) {
  RowSum result{-std::numeric_limits<double>::infinity(), 0};
  for (int64_t j = team.rank(); j < k; j += team.size())
    result.largest = LargerOf()(result.largest, static_cast<double>(row[j]));
  result.largest = team.Fold(result.largest, LargerOf{});
  for (int64_t j = team.rank(); j < k; j += team.size())
    result.sum += std::exp(static_cast<double>(row[j]) - result.largest);
  result.sum = team.Fold(result.sum, AddBoth{});
  return result;
}

template <typename T>
struct LossRow {
  const T *data, *label;
  int64_t classes;
  double* losses;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const T* x = data + i * classes;
    const RowSum row = SumOfRow(team, x, classes);
    if (team.rank() != 0) return;
    const int64_t c = static_cast<int64_t>(label[i]);
    if (c < 0 || c >= classes) {
      losses[i] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    const double p = std::exp(static_cast<double>(x[c]) - row.largest) / row.sum;
    losses[i] = -std::log(p < kSmallestProbability ? kSmallestProbability : p);
  }
};
template <typename T>
struct SumRow {
  const double* losses;
  int64_t count;
  T* out;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t) const {
    double sum = 0;
    for (int64_t i = team.rank(); i < count; i += team.size()) sum += losses[i];
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, 0, static_cast<ComputeOf<T>>(sum));
  }
};
template <typename T>
struct GradientKernel {
  const T *data, *label, *head;
  int64_t classes;
  T* out;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const RowSum row = SumOfRow(team, data + i * classes, classes);
    const double g = static_cast<double>(head[0]);
    for (int64_t j = team.rank(); j < classes; j += team.size()) {
      const double p = std::exp(static_cast<double>(data[i * classes + j]) - row.largest) / row.sum;
      const double target = j == static_cast<int64_t>(label[i]) ? 1 : 0;
      Assign(req, out, i * classes + j, static_cast<ComputeOf<T>>(g * (p - target)));
    }
  }
};

// Throws kData for a label out of range. On other devices the loss becomes NaN instead.
template <typename T>
void CheckLabels(const OnCpu&, const T* label, int64_t rows, int64_t classes) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t c = static_cast<int64_t>(label[i]);
    if (c < 0 || c >= classes)
      Throw(ErrorKind::kData, "softmax_cross_entropy: label {} of row {} is not in [0, {})", c, i,
            classes);
  }
}
template <typename Device, typename T>
void CheckLabels(const Device&, const T*, int64_t, int64_t) {}

template <typename Device>
void Forward(const TBlob& data, const TBlob& label, const EnvArguments& env, TBlob* ret,
             OpReqType req, RunContext ctx) {
  if (req == OpReqType::kNullOp) return;
  const Device device{ctx};
  const int64_t n = data.shape[0], k = data.shape[1];
  double* losses = env.resource[0].GetSpace<double>(n);
  SwitchFloating(data.type, "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* labels = label.dptr<T>();
    CheckLabels(device, labels, n, k);  // before the loop, which must not throw
    ForRows(device, n, 4 * k, LossRow<T>{data.dptr<T>(), labels, k, losses});
    ForRows(device, 1, n, SumRow<T>{losses, n, ret->dptr<T>(), req});
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const Input0& data, const Input1& label, const EnvArguments&,
              TBlob* data_grad, TBlob* label_grad, OpReqType req_data, OpReqType req_label,
              RunContext ctx) {
  const Device device{ctx};
  const int64_t n = data.data.shape[0], k = data.data.shape[1];
  ZeroBlob(device, req_label, *label_grad);
  if (req_data == OpReqType::kNullOp) return;
  SwitchFloating(data.data.type, "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForRows(device, n, 4 * k,
            GradientKernel<T>{data.data.dptr<T>(), label.data.dptr<T>(), head.data.dptr<T>(), k,
                              data_grad->dptr<T>(), req_data});
  });
}

}  // namespace mxtrain::softmax_cross_entropy

MXTRAIN_KERNELS(softmax_cross_entropy, Device, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "softmax_cross_entropy")
      .set_function(Device::kType, softmax_cross_entropy::Forward<Device>, kNoInplace)
      .set_gradient(Device::kType, softmax_cross_entropy::Backward<Device>, kNoInplace);
}
