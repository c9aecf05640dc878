#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax_activation/softmax_activation.h"

namespace mxtrain {
namespace {

class SoftmaxActivationCpu final : public Operator {
 public:
  explicit SoftmaxActivationCpu(const SoftmaxActivationParam& param) : channel_(param.mode == kSoftmaxChannel) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* x = in[0].dptr<T>();
      T* y = out[0].dptr<T>();
      SwitchReq(req[0], [&](auto accumulate) {
        ForEachSoftmax(in[0].shape, [=](int64_t first, int64_t end, int64_t step) {
          A largest = -std::numeric_limits<A>::infinity(), sum = 0;
          for (int64_t i = first; i < end; i += step) largest = std::max(largest, A(x[i]));
          for (int64_t i = first; i < end; i += step) sum += std::exp(A(x[i]) - largest);
          for (int64_t i = first; i < end; i += step) {
            const A p = std::exp(A(x[i]) - largest) / sum;
            y[i] = static_cast<T>(accumulate() ? A(y[i]) + p : p);
          }
        });
      });
    });
  }

  // y (g - sum of g y)
  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob>, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* g = out_grad[0].dptr<T>();
      const T* y = out[0].dptr<T>();
      T* dx = in_grad[0].dptr<T>();
      SwitchReq(req[0], [&](auto accumulate) {
        ForEachSoftmax(in_grad[0].shape, [=](int64_t first, int64_t end, int64_t step) {
          A dot = 0;
          for (int64_t i = first; i < end; i += step) dot += A(g[i]) * A(y[i]);
          for (int64_t i = first; i < end; i += step) {
            const A d = A(y[i]) * (A(g[i]) - dot);
            dx[i] = static_cast<T>(accumulate() ? A(dx[i]) + d : d);
          }
        });
      });
    });
  }

 private:
  // f(first, end, step) for every softmax.
  template <typename F>
  void ForEachSoftmax(const TShape& shape, F f) const {
    const int64_t inner = channel_ ? shape.Product(2, shape.ndim()) : 1;
    const int64_t classes = channel_ ? shape[1] : shape.Product(1, shape.ndim());
    ParallelFor(shape[0] * inner, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, 8 * classes)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t first = i / inner * classes * inner + i % inner;
                    f(first, first + classes * inner, inner);
                  }
                });
  }

  bool channel_;
};

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax_activation_cpu, registry) {
  registry.AddRow(mxtrain::ReferenceRow<mxtrain::SoftmaxActivationProperty, mxtrain::SoftmaxActivationCpu>("SoftmaxActivation"));
}
