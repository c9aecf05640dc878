// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftmaxOutput, written once for all devices.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax_output/softmax_gradient.h"
#include "mxtrain/operators/softmax_output/softmax_row.h"

namespace mxtrain::softmax_output {

struct IsValid {
  NumberReader labels;
  int64_t ignore;
  MXTRAIN_HD double operator()(int64_t i) const { return labels.Index(i) != ignore ? 1 : 0; }
};

// Gradient of an element for class labels. `valid`: number of valid labels, or null if it does not
// matter.
template <typename T>
struct FromClasses {
  using A = AccumulatorOf<T>;
  SoftmaxView view;
  SoftmaxTarget target;
  NumberReader labels;
  const T *p, *head;
  const double* valid;
  MXTRAIN_HD A operator()(int64_t i) const {
    const int64_t k = i / view.inner % view.classes,
                  row = i / (view.inner * view.classes) * view.inner + i % view.inner;
    const int64_t chosen = labels.Index(row);
    if (target.use_ignore && chosen == target.ignore) return A(0) * Head(i);
    const double scale = valid ? target.scale / (*valid < 1 ? 1 : *valid) : target.scale;
    return A(scale) * (A(p[i]) - (k == chosen ? A(target.on) : A(target.off))) * Head(i);
  }
  MXTRAIN_HD A Head(int64_t i) const { return head ? A(head[i]) : A(1); }
};

// The same for probabilities as labels: not normalized, ignored or smoothed, as in MXNet.
template <typename T>
struct FromProbabilities {
  using A = AccumulatorOf<T>;
  NumberReader labels;
  const T *p, *head;
  A scale;
  MXTRAIN_HD A operator()(int64_t i) const {
    const A gradient = scale * (A(p[i]) - static_cast<A>(labels.Number(i)));
    return head ? gradient * A(head[i]) : gradient;
  }
};

// The gradient of the weighted and the focal loss, for a team. With a_k = p_k dL_k/dp_k of the
// terms: t_j a_j - p_j sum_k t_k a_k.
template <typename T>
struct WeightedRow {
  SoftmaxPlaces places;
  SoftmaxTarget target;
  SoftmaxTerm term;
  NumberReader labels;
  bool classes;  // labels are class indices; else distributions
  const T *p, *head;
  const double* valid;
  T* gradient;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t chosen = classes ? labels.Index(row) : -1;
    const double divisor = valid && *valid > 1 ? *valid : 1,
                 scale = classes && target.use_ignore && chosen == target.ignore
                             ? 0
                             : target.scale / divisor;
    double sum = 0;
    for (int64_t k = team.rank(); k < places.view.classes; k += team.size())
      sum += Pull(row, k, chosen);
    sum = team.Fold(sum, AddBoth{});
    for (int64_t k = team.rank(); k < places.view.classes; k += team.size()) {
      const int64_t i = places.At(row, k);
      const double g = scale * (Pull(row, k, chosen) - static_cast<double>(p[i]) * sum);
      Assign(req, gradient, i, head ? g * static_cast<double>(head[i]) : g);
    }
  }
  MXTRAIN_HD double Pull(int64_t row, int64_t k, int64_t chosen) const {
    const int64_t i = places.At(row, k);
    const double share = !classes ? labels.Number(i) : k == chosen ? target.on : target.off;
    return share == 0 ? 0 : share * term(k, static_cast<double>(p[i]));
  }
};

template <typename Device>
class SoftmaxOutput final : public Operator {
 public:
  SoftmaxOutput(const SoftmaxOutputParam& param, SoftmaxView view) : param_(param), view_(view) {}

  void Forward(const ForwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[0], &output = args.out_data[0];
    SwitchFloating(data.type, "SoftmaxOutput", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEachSoftmax(Device{args.ctx.run_ctx}, view_,
                     SoftmaxRow<T>{{view_}, data.dptr<T>(), output.dptr<T>(), req});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    const TBlob &label = args.in_data[1], &data_grad = args.in_grad[0];
    const NumberReader labels(label);
    const bool classes = label.shape != data_grad.shape;
    const double* valid = classes && param_.normalization == kSoftmaxValid
                              ? CountValid(device, labels, label.Size(), args.ctx.workspace)
                              : nullptr;
    SwitchFloating(data_grad.type, "SoftmaxOutput", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* p = args.out_data[0].dptr<T>();
      const T* head = param_.out_grad ? args.out_grad[0].dptr<T>() : nullptr;
      if (param_.weighted()) {
        const SoftmaxTarget target = classes ? MakeUncountedTarget(param_, view_, label.Size())
                                             : SoftmaxTarget{.scale = param_.grad_scale};
        const SoftmaxTerm term(param_.class_weights, param_.focal_gamma);
        ForEachSoftmax(
            device, view_,
            WeightedRow<T>{
                {view_}, target, term, labels, classes, p, head, valid, data_grad.dptr<T>(), req});
      } else if (classes) {
        MapOn<T>(device, data_grad, req,
                 FromClasses<T>{view_, MakeUncountedTarget(param_, view_, label.Size()), labels, p,
                                head, valid});
      } else {
        MapOn<T>(device, data_grad, req,
                 FromProbabilities<T>{labels, p, head, AccumulatorOf<T>(param_.grad_scale)});
      }
    });
  }

 private:
  const double* CountValid(const Device& device, const NumberReader& labels, int64_t count,
                           const TBlob& workspace) const {
    const IsValid valid{labels, static_cast<int64_t>(param_.ignore_label)};
    return SumTerms<double>(device, Slices(1, count), valid, workspace.dptr<double>());
  }

  SoftmaxOutputParam param_;
  SoftmaxView view_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const SoftmaxOutputProperty&>(base);
  if (property.param().class_weights.size() > SoftmaxTerm::kMostCarried &&
      request.ctx.type != DeviceType::kCPU) {
    return Refusal{format("at most {} class_weights only", SoftmaxTerm::kMostCarried)};
  }
  Plan plan = PlainPlan(property, request);
  plan.cost += 4.0 * static_cast<double>(request.in[0].shape.Size());  // two exponentials each
  if (request.needs_backward && property.param().normalization == kSoftmaxValid) {
    plan.backward_workspace = BytesOfSum<double>(Slices(1, request.in[1].shape.Size()));
  }
  plan.make = [param = property.param(), view = property.View(request.in[0].shape)] {
    return std::make_unique<SoftmaxOutput<Device>>(param, view);
  };
  return plan;
}

}  // namespace mxtrain::softmax_output

MXTRAIN_KERNELS(softmax_output, Device, registry) {
  registry.AddKernel(
      mxtrain::LastKernel<Device>("SoftmaxOutput", mxtrain::softmax_output::MakePlan<Device>));
}
