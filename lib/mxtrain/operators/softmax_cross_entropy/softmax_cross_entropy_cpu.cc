// softmax_cross_entropy(data [N, K], label [N]) = the sum over rows of -log(max(softmax(row)[label], 1e-8)), of shape [1]. Its gradient is
// (softmax - onehot) times the head gradient; labels have none.
#include <algorithm>
#include <cmath>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::softmax_cross_entropy {
namespace {

constexpr double kSmallestProbability = 1e-8;

TShape Shape(const TShape& data, const TShape& label, const EnvArguments&) {
  if (data.ndim() != 2 || label != TShape{data[0]}) {
    Throw(ErrorKind::kConfig, "softmax_cross_entropy: data [N, K] and label [N] were expected, but they are {} and {}", data.ToString(),
          label.ToString());
  }
  return TShape{1};
}

// A row's largest element, and the sum of exp(x - largest).
struct RowSum {
  double largest = 0, sum = 0;
};
template <typename T>
RowSum SumOfRow(const T* row, int64_t k) {
  RowSum result{static_cast<double>(row[0]), 0};
  for (int64_t j = 1; j < k; ++j) result.largest = std::max(result.largest, static_cast<double>(row[j]));
  for (int64_t j = 0; j < k; ++j) result.sum += std::exp(static_cast<double>(row[j]) - result.largest);
  return result;
}

// Class of a row; a label that is none throws kData.
template <typename T>
int64_t ClassOf(const T* label, int64_t row, int64_t k) {
  const int64_t c = static_cast<int64_t>(label[row]);
  if (c < 0 || c >= k) Throw(ErrorKind::kData, "softmax_cross_entropy: label {} of row {} is not in [0, {})", c, row, k);
  return c;
}

void Forward(const TBlob& data, const TBlob& label, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  if (req == OpReqType::kNullOp) return;
  const int64_t n = data.shape[0], k = data.shape[1];
  double* losses = env.resource[0].GetSpace<double>(n);
  SwitchFloating(data.type, "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = data.dptr<T>(), *labels = label.dptr<T>();
    for (int64_t i = 0; i < n; ++i) ClassOf(labels, i, k);  // here, since nothing may be thrown inside the parallel loop
    ParallelFor(n, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, k)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RowSum row = SumOfRow(x + i * k, k);
        const double p = std::exp(static_cast<double>(x[i * k + static_cast<int64_t>(labels[i])]) - row.largest) / row.sum;
        losses[i] = -std::log(std::max(p, kSmallestProbability));
      }
    });
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += losses[i];
    Assign(req, ret->dptr<T>(), 0, static_cast<ComputeOf<T>>(sum));
  });
}

void Backward(const OutputGrad& head, const Input0& data, const Input1& label, const EnvArguments&, TBlob* data_grad, TBlob* label_grad,
              OpReqType req_data, OpReqType req_label, RunContext ctx) {
  const int64_t n = data.data.shape[0], k = data.data.shape[1];
  SwitchFloating(data.data.type, "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = data.data.dptr<T>(), *labels = label.data.dptr<T>();
    const double g = static_cast<double>(head.data.dptr<T>()[0]);
    Map<T>(ctx, *label_grad, req_label, [](int64_t) { return ComputeOf<T>(0); });
    if (req_data == OpReqType::kNullOp) return;
    T* dx = data_grad->dptr<T>();
    ParallelFor(n, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, k)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RowSum row = SumOfRow(x + i * k, k);
        for (int64_t j = 0; j < k; ++j) {
          const double p = std::exp(static_cast<double>(x[i * k + j]) - row.largest) / row.sum;
          const double target = j == static_cast<int64_t>(labels[i]) ? 1 : 0;
          Assign(req_data, dx, i * k + j, static_cast<ComputeOf<T>>(g * (p - target)));
        }
      }
    });
  });
}

}  // namespace

MXTRAIN_OPERATOR(softmax_cross_entropy_cpu, registry) {
  SimpleOp(registry, "softmax_cross_entropy")
      .set_arguments({"data", "label"})
      .set_shape_function(Shape)
      .set_function(DeviceType::kCPU, Forward, kNoInplace)
      .set_gradient(DeviceType::kCPU, Backward, kNoInplace)
      .set_resource_request(
          ResourceRequest::kTempSpace,
          [](const std::vector<TShape>& in, const EnvArguments&) { return in[0][0] * static_cast<int64_t>(sizeof(double)); })
      .set_types(kFloatingTypes)
      .describe("the sum over rows of -log(softmax(row)[label])");
}

}  // namespace mxtrain::softmax_cross_entropy
