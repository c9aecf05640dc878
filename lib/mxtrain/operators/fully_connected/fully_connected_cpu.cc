// SPDX-License-Identifier: Apache-2.0
// The reference loops of FullyConnected.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/weighted_types.h"
#include "mxtrain/operators/fully_connected/fully_connected.h"

namespace mxtrain {
namespace {

using P = FullyConnectedProperty;

// out[r, c] = f(r, c) as `req` says, for a matrix of `columns` columns.
template <typename T, typename F>
void ForEachCell(const TBlob& out, int64_t columns, OpReqType req, F f) {
  if (req == OpReqType::kNullOp) return;
  T* data = out.dptr<T>();
  ParallelFor(out.Size(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) Assign(req, data, at, f(at / columns, at % columns));
  });
}

// Sum of a[i * a_step] * b[i * b_step].
template <typename T>
AccumulatorOf<T> Dot(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t n) {
  AccumulatorOf<T> sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += AccumulatorOf<T>(a[i * a_step]) * AccumulatorOf<T>(b[i * b_step]);
  return sum;
}

class FullyConnectedReference final : public Operator {
 public:
  explicit FullyConnectedReference(const FullyConnectedParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "FullyConnected", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t hidden = args.in_data[P::kWeight].shape[0],
                    inputs = args.in_data[P::kWeight].shape[1];
      const T* data = args.in_data[P::kData].dptr<T>();
      const T* weight = args.in_data[P::kWeight].dptr<T>();
      const TBlob bias = param_.no_bias ? TBlob() : args.in_data[P::kBias];
      ForEachCell<T>(args.out_data[0], hidden, args.req[0], [&](int64_t row, int64_t h) {
        return Dot(data + row * inputs, 1, weight + h * inputs, 1, inputs) +
               weighted::BiasAt<T, AccumulatorOf<T>>(bias, h);
      });
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.in_grad[0].type, "FullyConnected", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t hidden = args.in_data[P::kWeight].shape[0],
                    inputs = args.in_data[P::kWeight].shape[1];
      const int64_t rows = args.out_grad[0].Size() / hidden;
      const T* head = args.out_grad[0].dptr<T>();
      const T* data = args.in_data[P::kData].dptr<T>();
      const T* weight = args.in_data[P::kWeight].dptr<T>();
      ForEachCell<T>(args.in_grad[P::kData], inputs, args.req[P::kData],
                     [&](int64_t row, int64_t i) {
                       return Dot(head + row * hidden, 1, weight + i, inputs, hidden);
                     });
      ForEachCell<T>(
          args.in_grad[P::kWeight], inputs, args.req[P::kWeight],
          [&](int64_t h, int64_t i) { return Dot(head + h, hidden, data + i, inputs, rows); });
      if (param_.no_bias) return;
      SwitchFloating(args.in_grad[P::kBias].type, "FullyConnected", [&](auto bias_tag) {
        ForEachCell<typename decltype(bias_tag)::type>(
            args.in_grad[P::kBias], hidden, args.req[P::kBias], [&](int64_t, int64_t h) {
              AccumulatorOf<T> sum = 0;
              for (int64_t row = 0; row < rows; ++row)
                sum += AccumulatorOf<T>(head[row * hidden + h]);
              return sum;
            });
      });
    });
  }

 private:
  FullyConnectedParam param_;
};

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(fully_connected_cpu, registry) {
  registry.AddKernel(
      mxtrain::ReferenceKernel<mxtrain::FullyConnectedProperty, mxtrain::FullyConnectedReference>(
          "FullyConnected"));
}
