// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that only move elements: transposes, slices, concatenation, padding. Such an operator
// is its parameters, its shapes and the list of its moves (view_moves.h); the rest is here:
// forward, the gradient, all requests, all types, every device.
//
//   class ReverseProperty final : public ViewProperty<ReverseParam> {
//     ... TypeString, Description, OutShape ...
//     MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const
//     override;
//   };
//   MXTRAIN_KERNELS(reverse, Device, registry) {
//     registry.AddKernel(mxtrain::ViewKernel<mxtrain::ReverseParam, Device>("reverse"));
//   }
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/joined_copies.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/view_loops.h"
#include "mxtrain/operator/view_moves.h"

namespace mxtrain {

template <typename P>
class ViewProperty : public MovingProperty<P> {
 public:
  // The moves between arrays of these shapes and layouts.
  virtual MoveList MovesOf(std::span<const TensorSpec> in,
                           std::span<const TensorSpec> out) const = 0;
  // The layout of all arrays.
  virtual Layout LayoutFor(const PlanRequest& request) const { return (void)request, Layout(); }
  bool IsIdentity() const override { return false; }

  // Of the only output, from known shapes. Throws kConfig.
  virtual TShape OutShape(const std::vector<TShape>& in) const { return in[0]; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    if (!std::all_of(in->begin(), in->end(), [](const TShape& shape) { return shape.known(); }))
      return false;
    UnifyShape(OutShape(*in), &(*out)[0], this->TypeString(), "output");
    return true;
  }
};

// `length` indices of an axis: begin, begin + step, ...
struct AxisRange {
  int64_t begin = 0, length = 0, step = 1;
};
MXTRAIN_API TShape LengthsOf(std::span<const AxisRange> ranges);
// Output 0 is these ranges of input 0.
MXTRAIN_API MoveList MovesOfRanges(const TShape& data, std::span<const AxisRange> ranges);
MXTRAIN_API std::vector<TShape> ShapesOf(std::span<const TensorSpec> specs);

// An operator whose output is a range of every axis of its first input.
template <typename P>
class RangesProperty : public ViewProperty<P> {
 public:
  // One per axis of in[0]. Throws kConfig.
  virtual std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const = 0;

  TShape OutShape(const std::vector<TShape>& in) const final { return LengthsOf(RangesOf(in)); }
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec>) const final {
    return MovesOfRanges(in[0].shape, RangesOf(ShapesOf(in)));
  }
};

// The elements of an array of this shape outside of a box, as disjoint views.
MXTRAIN_API std::vector<StridedView> Outside(const TShape& shape, const TShape& begin,
                                             const TShape& length);

// The moves of an operator, merged, in both directions.
struct ViewPlan {
  struct Step {
    int source = Move::kNone, target = 0;  // inputs and outputs in forward, the reverse in backward
    MergedMove move;
    bool add = false;  // whatever the request
  };
  struct Gradient {  // of an input
    std::vector<Step> steps;
    bool zero = false;    // before the steps, which do not write every element
    bool staged = false;  // summed in float32, in workspace
  };

  std::vector<Step> forward;
  std::vector<Gradient> gradients;
  double fill = 0;
  int64_t stage_bytes = 0;
};
MXTRAIN_API ViewPlan PlanViews(const MoveList& list, std::span<const TensorSpec> in,
                               std::span<const TensorSpec> out);

template <typename Device>
class ViewOperator final : public Operator {
 public:
  explicit ViewOperator(std::shared_ptr<const ViewPlan> plan) : plan_(std::move(plan)) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    Joined joined(device);
    for (const ViewPlan::Step& step : plan_->forward) {
      const OpReqType req = args.req[step.target];
      if (req == OpReqType::kNullOp) continue;
      const TBlob& to = args.out_data[step.target];
      const bool add = req == OpReqType::kAddTo;
      if (add || !joined.Take(step, args.in_data, to))
        Run(device, step, plan_->fill, args.in_data, to, add);
    }
    joined.Run();
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    Joined joined(device);
    for (size_t i = 0; i < plan_->gradients.size(); ++i) {
      const OpReqType req = args.req[i];
      if (req == OpReqType::kNullOp) continue;
      const ViewPlan::Gradient& gradient = plan_->gradients[i];
      TBlob target = args.in_grad[i];
      if (gradient.staged) {
        target.data = args.ctx.workspace.data;
        target.type = DType::kFloat32;
      }
      const bool add = req == OpReqType::kAddTo && !gradient.staged;
      if (gradient.steps.size() == 1 && !gradient.zero && !gradient.staged && !add &&
          !gradient.steps[0].add && joined.Take(gradient.steps[0], args.out_grad, target))
        continue;
      if (gradient.zero && !add) ZeroBlob(device, OpReqType::kWriteTo, target);
      for (const ViewPlan::Step& step : gradient.steps) {
        if (step.source != Move::kNone || !add)
          Run(device, step, 0, args.out_grad, target, add || step.add);
      }
      if (gradient.staged) WriteSums(device, target, req, args.in_grad[i]);
    }
    joined.Run();
  }

 private:
  // The copies of one call that a GPU can make together; the order of the others among them does
  // not matter.
  class Joined {
   public:
    explicit Joined(const Device& device) : device_(device) {}
    // False: the step is not such a copy.
    bool Take(const ViewPlan::Step& step, std::span<const TBlob> sources, const TBlob& to) {
      if constexpr (Device::kType == DeviceType::kGPU) {
        if (step.source == Move::kNone) return false;
        const TBlob& from = sources[step.source];
        if (from.data == to.data || !JoinedCopies::Takes(step.move, from, to)) return false;
        if (!copies_.Add(step.move, from, to)) {
          Run();
          copies_.Add(step.move, from, to);
        }
        step_ = &step;
        from_ = &from;
        to_ = to;
        return true;
      }
      return (void)step, (void)sources, (void)to, false;
    }
    void Run() {
      if (copies_.count() == 1) {
        RunMove(device_, step_->move, *from_, to_, false);
      } else if (copies_.count() > 1) {
        copies_.Run(device_);
      }
      copies_ = {};
    }

   private:
    const Device& device_;
    JoinedCopies copies_;
    // The last one: alone, it needs no kernel.
    const ViewPlan::Step* step_ = nullptr;
    const TBlob* from_ = nullptr;
    TBlob to_;
  };

  static void Run(const Device& device, const ViewPlan::Step& step, double constant,
                  std::span<const TBlob> sources, const TBlob& to, bool add) {
    if (step.source == Move::kNone) return RunFill(device, step.move, constant, to, add);
    const TBlob& from = sources[step.source];
    if (from.data != to.data) RunMove(device, step.move, from, to, add);  // else it is in place
  }

  static void WriteSums(const Device& device, const TBlob& sums, OpReqType req, const TBlob& to) {
    SwitchFloating(to.type, "a gradient", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(device, to, req, ElementAt<float, float>{sums.template dptr<float>()});
    });
  }

  std::shared_ptr<const ViewPlan> plan_;
};

// The kernel of the operator whose property is a ViewProperty<P>.
template <typename P, typename Device>
KernelEntry ViewKernel(std::string op) {
  return LastKernel<Device>(
      std::move(op),
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        const auto& property = static_cast<const ViewProperty<P>&>(base);
        const Layout layout = property.LayoutFor(request);
        std::vector<TensorSpec> in(request.in.begin(), request.in.end()),
            out(request.out.begin(), request.out.end());
        for (TensorSpec& spec : in) spec.layout = layout;
        for (TensorSpec& spec : out) spec.layout = layout;
        Plan plan = PlainPlan(property, request);
        const auto views =
            std::make_shared<const ViewPlan>(PlanViews(property.MovesOf(in, out), in, out));
        std::fill(plan.in.begin(), plan.in.end(), layout);
        std::fill(plan.out.begin(), plan.out.end(), layout);
        GrantInplace(property, request, &plan);
        if (request.needs_backward) plan.backward_workspace = views->stage_bytes;
        plan.make = [views] { return std::make_unique<ViewOperator<Device>>(views); };
        return plan;
      },
      Takes::kEveryType);
}

}  // namespace mxtrain
