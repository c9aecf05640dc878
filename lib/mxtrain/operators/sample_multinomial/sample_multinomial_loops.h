// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes drawn from rows of probabilities, written once for both devices: Device is OnCpu or
// OnGpu.
#include <cmath>
#include <memory>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/sample_multinomial/sample_multinomial.h"

namespace mxtrain::sample_multinomial {

using P = SampleMultinomialProperty;

// Class of draw i, which belongs to row i / each.
template <typename T>
struct ClassOf {
  const T* data;
  int64_t classes, each;
  RandomDraws random;

  MXTRAIN_HD int64_t operator()(int64_t i) const {
    const T* row = data + i / each * classes;
    const auto number = static_cast<double>(random.Uniform(static_cast<uint64_t>(i)));
    double sum = 0;
    int64_t last = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const auto p = static_cast<double>(row[k]);
      sum += p;
      if (p > 0) last = k;
      if (number < sum) return k;
    }
    return last;
  }
};
// As a number of the output's kind.
template <typename T, typename V>
struct NumberOf {
  ClassOf<T> drawn;
  MXTRAIN_HD V operator()(int64_t i) const { return static_cast<V>(drawn(i)); }
};
template <typename T>
struct LogProbability {
  ClassOf<T> drawn;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    const int64_t row = i / drawn.each;
    return std::log(AccumulatorOf<T>(drawn.data[row * drawn.classes + drawn(i)]));
  }
};

// The gradient at one probability: the head gradients of its draws, each over the probability.
template <typename T>
struct ProbabilityGradient {
  using A = AccumulatorOf<T>;
  const T *data, *head;
  NumberReader drawn;
  int64_t classes, each;
  MXTRAIN_HD A operator()(int64_t i) const {
    const int64_t row = i / classes, own = i % classes;
    A sum = 0;
    for (int64_t k = row * each; k < (row + 1) * each; ++k) {
      if (drawn.Index(k) == own) sum += A(head[k]);
    }
    return sum == 0 ? A(0) : sum / A(data[i]);
  }
};

template <typename Device>
class SampleMultinomial final : public Operator {
 public:
  explicit SampleMultinomial(const SampleMultinomialParam&) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob &data = args.in_data[0], &out = args.out_data[P::kClass];
    if (out.Size() == 0) return;
    const Device device{args.ctx.run_ctx};
    const int64_t classes = data.shape[data.shape.ndim() - 1];
    SwitchFloating(data.type, "_sample_multinomial", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const ClassOf<T> drawn{data.dptr<T>(), classes, out.Size() / (data.Size() / classes),
                             args.ctx.requested[0].Draws()};
      SwitchType(out.type, "_sample_multinomial", [&](auto out_tag) {
        using Out = typename decltype(out_tag)::type;
        MapOn<Out>(device, out, args.req[P::kClass], NumberOf<T, AccumulatorOf<Out>>{drawn});
      });
      if (args.out_data.size() > 1) {
        MapOn<T>(device, args.out_data[P::kLogProbability], args.req[P::kLogProbability],
                 LogProbability<T>{drawn});
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& data = args.in_data[0];
    if (data.Size() == 0) return;
    const int64_t classes = data.shape[data.shape.ndim() - 1];
    SwitchFloating(data.type, "_sample_multinomial", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TBlob& drawn = args.out_data[P::kClass];
      MapOn<T>(Device{args.ctx.run_ctx}, args.in_grad[0], args.req[0],
               ProbabilityGradient<T>{data.dptr<T>(), args.out_grad[P::kLogProbability].dptr<T>(),
                                      NumberReader(drawn), classes,
                                      drawn.Size() / (data.Size() / classes)});
    });
  }
};

}  // namespace mxtrain::sample_multinomial

MXTRAIN_KERNELS(sample_multinomial, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<SampleMultinomialProperty, sample_multinomial::SampleMultinomial<Device>,
                      Device>("_sample_multinomial"));
}
