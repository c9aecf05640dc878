#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/activation/activation.h"
#include "mxtrain/operators/activation/activation_functions.h"

namespace mxtrain {
namespace {

template <typename F>
void SwitchActivation(int act_type, F&& f) {
  switch (act_type) {
    case kReLU:
      return f(ReLUFunction{});
    case kSigmoid:
      return f(SigmoidFunction{});
    case kTanh:
      return f(TanhFunction{});
    case kSoftReLU:
      return f(SoftReLUFunction{});
    case kSoftSign:
      return f(SoftSignFunction{});
    default:
      MXTRAIN_ASSERT(false);
  }
}

// A loop over stored elements, whatever the layout.
class ActivationCpu final : public Operator {
 public:
  explicit ActivationCpu(const ActivationParam& param) : param_(param) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "Activation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      SwitchActivation(param_.act_type, [&](auto function) {
        MapElements<T>(
            out[0], req[0], [function](ComputeOf<T> x) { return function.Value(x); }, in[0]);
      });
    });
  }

  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const bool from_input = param_.act_type == kSoftSign;
    SwitchFloating(in_grad[0].type, "Activation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      SwitchActivation(param_.act_type, [&](auto function) {
        MapElements<T>(
            in_grad[0], req[0], [function](C g, C v) { return g * function.Gradient(v, v); }, out_grad[0], from_input ? in[0] : out[0]);
      });
    });
  }

 private:
  ActivationParam param_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const auto& property = static_cast<const ActivationProperty&>(base);
  Plan plan = FlatPlan(property, request, property.elementwise() == Elementwise::kZeroToZero);
  plan.make = [param = property.param()] { return std::make_unique<ActivationCpu>(param); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(activation_cpu, registry) {
  registry.AddRow({"Activation", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
