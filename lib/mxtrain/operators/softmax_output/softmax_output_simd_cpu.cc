// SPDX-License-Identifier: Apache-2.0
// The float32 kernel of SoftmaxOutput with class indices as labels, the usual case in training. The
// softmax is that of operators/softmax.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax/softmax_kernels.h"
#include "mxtrain/operators/softmax_output/softmax_gradient.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {
namespace {

class SoftmaxOutputSimd final : public Operator {
 public:
  SoftmaxOutputSimd(const SoftmaxOutputParam& param, SoftmaxView view)
      : param_(param), view_(view) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp || view_.classes == 0) return;
    const float* x = args.in_data[0].dptr<float>();
    float* y = args.out_data[0].dptr<float>();
    ForEachPiece([&](int64_t sample, int64_t begin, int64_t end) {
      const int64_t at = sample * view_.classes * view_.inner;
      if (view_.inner == 1) {
        kernels_.forward_rows({}, x + at, y + at, end - begin, view_.classes, view_.classes);
      } else {
        kernels_.forward_columns({}, x + at, y + at, view_.classes, view_.inner, begin, end);
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    const SoftmaxTarget target = MakeSoftmaxTarget(param_, view_, args.in_data[1]);
    const NumberReader labels(args.in_data[1]);
    const float* p = args.out_data[0].dptr<float>();
    float* grad = args.in_grad[0].dptr<float>();
    SwitchReq(args.req[0], [&](auto accumulate) {
      ForEachPiece([&](int64_t sample, int64_t begin, int64_t end) {
        const int64_t at = sample * view_.classes * view_.inner;
        if (view_.inner == 1) {
          for (int64_t r = 0; r < end - begin; ++r) {
            const int64_t row = at + r * view_.classes;
            GradientOfRow<accumulate()>(p + row, grad + row, labels.Index(sample + r), target);
          }
        } else {
          GradientOfColumns<accumulate()>(p + at, grad + at, labels, sample * view_.inner, begin,
                                          end, target);
        }
      });
    });
  }

 private:
  // f(sample, begin, end): without inner positions for `end - begin` samples starting at `sample`;
  // else for the positions [begin, end) of one sample.
  template <typename F>
  void ForEachPiece(F f) const {
    const int64_t grain =
        std::max<int64_t>(16, kParallelGrain / 4 / std::max<int64_t>(1, view_.classes));
    ParallelFor(view_.outer * view_.inner, grain, [&](int64_t begin, int64_t end) {
      if (view_.inner == 1) return f(begin, 0, end - begin);
      while (begin < end) {
        const int64_t sample = begin / view_.inner,
                      stop = std::min(end, (sample + 1) * view_.inner);
        f(sample, begin - sample * view_.inner, stop - sample * view_.inner);
        begin = stop;
      }
    });
  }

  template <bool kAccumulate>
  void GradientOfRow(const float* p, float* grad, int64_t chosen,
                     const SoftmaxTarget& target) const {
    const float scale =
        target.use_ignore && chosen == target.ignore ? 0.0f : static_cast<float>(target.scale);
    const float on = static_cast<float>(target.on), off = static_cast<float>(target.off);
    const bool inside = chosen >= 0 && chosen < view_.classes;
    const float before = kAccumulate && inside ? grad[chosen] : 0.0f;
    for (int64_t k = 0; k < view_.classes; ++k)
      grad[k] = (kAccumulate ? grad[k] : 0.0f) + scale * (p[k] - off);
    if (inside) grad[chosen] = before + scale * (p[chosen] - on);
  }

  template <bool kAccumulate>
  void GradientOfColumns(const float* p, float* grad, const NumberReader& labels,
                         int64_t first_label, int64_t begin, int64_t end,
                         const SoftmaxTarget& target) const {
    constexpr int64_t kBlock = 256;
    int32_t chosen[kBlock];
    float scale[kBlock];
    const float on = static_cast<float>(target.on), off = static_cast<float>(target.off);
    for (; begin < end; begin += kBlock) {
      const int64_t size = std::min(kBlock, end - begin);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t label = labels.Index(first_label + begin + i);
        chosen[i] = label >= 0 && label < view_.classes ? static_cast<int32_t>(label) : -1;
        scale[i] =
            target.use_ignore && label == target.ignore ? 0.0f : static_cast<float>(target.scale);
      }
      for (int64_t k = 0; k < view_.classes; ++k) {
        const int64_t at = k * view_.inner + begin;
        for (int64_t i = 0; i < size; ++i) {
          const float g = scale[i] * (p[at + i] - (chosen[i] == k ? on : off));
          grad[at + i] = (kAccumulate ? grad[at + i] : 0.0f) + g;
        }
      }
    }
  }

  SoftmaxOutputParam param_;
  SoftmaxView view_;
  const softmax::Kernels<float>& kernels_ = softmax::KernelsOf<float>();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const SoftmaxOutputProperty&>(base);
  if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
  if (request.out_req[0] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  if (request.in[1].shape == request.in[0].shape) return Refusal{"class indices as labels only"};
  if (property.param().weighted())
    return Refusal{"class_weights and focal_gamma are not supported"};
  if (property.param().out_grad) return Refusal{"out_grad is not supported"};
  Plan plan = PlainPlan(property, request);
  plan.cost += 0.5 * static_cast<double>(request.in[0].shape.Size());
  plan.make = [param = property.param(), view = property.View(request.in[0].shape)] {
    return std::make_unique<SoftmaxOutputSimd>(param, view);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax_output_simd_cpu, registry) {
  registry.AddKernel({"SoftmaxOutput", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::PlanSimd});
}
