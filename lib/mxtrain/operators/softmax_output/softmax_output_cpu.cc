#include "mxtrain/operators/softmax_output/softmax_output.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax_output/softmax_gradient.h"

namespace mxtrain {
namespace {

class SoftmaxOutputCpu final : public Operator {
 public:
  SoftmaxOutputCpu(const SoftmaxOutputParam& param, SoftmaxView view) : param_(param), view_(view) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "SoftmaxOutput", [&](auto tag) {
      using T = typename decltype(tag)::type;
      SwitchReq(req[0], [&](auto accumulate) { Softmax<accumulate()>(in[0].dptr<T>(), out[0].dptr<T>()); });
    });
  }

  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "SoftmaxOutput", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* head = param_.out_grad ? out_grad[0].dptr<T>() : nullptr;
      SwitchReq(req[0], [&](auto accumulate) {
        if (param_.weighted()) {
          Weighted<accumulate()>(out[0].dptr<T>(), in[1], head, in_grad[0].dptr<T>());
        } else if (in[1].shape == in_grad[0].shape) {
          FromProbabilities<accumulate()>(out[0].dptr<T>(), in[1], head, in_grad[0].dptr<T>());
        } else {
          FromClasses<accumulate()>(out[0].dptr<T>(), in[1], head, in_grad[0].dptr<T>());
        }
      });
    });
  }

 private:
  // f(first element) for every softmax; its elements lie `inner` apart.
  template <typename F>
  void ForEachSoftmax(F f) const {
    const int64_t grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, 8 * view_.classes));
    ParallelFor(view_.outer * view_.inner, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i, i / view_.inner * view_.classes * view_.inner + i % view_.inner);
    });
  }

  template <bool kAccumulate, typename T>
  void Softmax(const T* x, T* y) const {
    using A = AccumulatorOf<T>;
    ForEachSoftmax([=, this](int64_t, int64_t first) {
      const int64_t step = view_.inner, end = first + view_.classes * step;
      A largest = -std::numeric_limits<A>::infinity(), sum = 0;
      for (int64_t i = first; i < end; i += step) largest = std::max(largest, A(x[i]));
      for (int64_t i = first; i < end; i += step) sum += std::exp(A(x[i]) - largest);
      for (int64_t i = first; i < end; i += step) {
        const A p = std::exp(A(x[i]) - largest) / sum;
        y[i] = static_cast<T>(kAccumulate ? A(y[i]) + p : p);
      }
    });
  }

  template <bool kAccumulate, typename T>
  void FromClasses(const T* p, const TBlob& label, const T* head, T* grad) const {
    using A = AccumulatorOf<T>;
    const SoftmaxTarget target = MakeSoftmaxTarget(param_, view_, label);
    const A scale = static_cast<A>(target.scale), on = static_cast<A>(target.on), off = static_cast<A>(target.off);
    const LabelReader labels(label);
    ForEachSoftmax([=, this](int64_t which, int64_t first) {
      const int64_t chosen = labels.Class(which);
      const bool ignored = target.use_ignore && chosen == target.ignore;
      for (int64_t k = 0; k < view_.classes; ++k) {
        const int64_t i = first + k * view_.inner;
        A g = ignored ? A(0) : scale * (A(p[i]) - (k == chosen ? on : off));
        if (head != nullptr) g *= A(head[i]);
        grad[i] = static_cast<T>(kAccumulate ? A(grad[i]) + g : g);
      }
    });
  }

  // Neither normalised nor ignored nor smoothed, as in the reference system.
  template <bool kAccumulate, typename T>
  void FromProbabilities(const T* p, const TBlob& label, const T* head, T* grad) const {
    using A = AccumulatorOf<T>;
    const LabelReader labels(label);
    const A scale = param_.grad_scale;
    ParallelFor(label.Size(), kParallelGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        A g = scale * (A(p[i]) - static_cast<A>(labels(i)));
        if (head != nullptr) g *= A(head[i]);
        grad[i] = static_cast<T>(kAccumulate ? A(grad[i]) + g : g);
      }
    });
  }

  // With a_k = p_k dL_k/dp_k of the terms: t_j a_j - p_j sum_k t_k a_k.
  template <bool kAccumulate, typename T>
  void Weighted(const T* p, const TBlob& label, const T* head, T* grad) const {
    const bool classes = label.Size() == view_.outer * view_.inner;  // numbers of them; else distributions
    const SoftmaxTarget target = classes ? MakeSoftmaxTarget(param_, view_, label) : SoftmaxTarget{.scale = param_.grad_scale};
    const LabelReader labels(label);
    const SoftmaxTerm term(param_);
    ForEachSoftmax([=, this](int64_t which, int64_t first) {
      const int64_t chosen = classes ? labels.Class(which) : -1;
      const double scale = target.use_ignore && chosen == target.ignore ? 0 : target.scale;
      const auto pull = [&](int64_t k) {
        const int64_t i = first + k * view_.inner;
        const double share = !classes ? labels(i) : k == chosen ? target.on : target.off;
        return share == 0 ? 0 : share * term(k, static_cast<double>(p[i]));
      };
      double sum = 0;
      for (int64_t k = 0; k < view_.classes; ++k) sum += pull(k);
      for (int64_t k = 0; k < view_.classes; ++k) {
        const int64_t i = first + k * view_.inner;
        double g = scale * (pull(k) - static_cast<double>(p[i]) * sum);
        if (head != nullptr) g *= static_cast<double>(head[i]);
        grad[i] = static_cast<T>(kAccumulate ? static_cast<double>(grad[i]) + g : g);
      }
    });
  }

  SoftmaxOutputParam param_;
  SoftmaxView view_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const auto& property = static_cast<const SoftmaxOutputProperty&>(base);
  Plan plan = PlainPlan(property, request);
  plan.cost += 4.0 * static_cast<double>(request.in[0].shape.Size());  // two exponentials each
  plan.make = [param = property.param(), view = property.View(request.in[0].shape)] {
    return std::make_unique<SoftmaxOutputCpu>(param, view);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax_output_cpu, registry) {
  registry.AddRow({"SoftmaxOutput", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
