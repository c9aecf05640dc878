#include <memory>

#include "mxtrain/operator/broadcast_index.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/leaky_relu/leaky_relu.h"
#include "mxtrain/operators/leaky_relu/leaky_relu_functions.h"
#include "mxtrain/operators/leaky_relu/slope_sums.h"

namespace mxtrain {
namespace {

// leaky, elu, selu, gelu: a loop over stored elements, whatever the layout; all map zero to zero.
template <typename Function>
class RectifierCpu final : public Operator {
 public:
  RectifierCpu(Function function, bool from_output) : function_(function), from_output_(from_output) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Map<T>(ctx.run_ctx, out[0], req[0],
             [x = in[0].dptr<T>(), function = function_](int64_t i) { return function.Value(AccumulatorOf<T>(x[i])); });
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* x = from_output_ ? out[0].dptr<T>() : in[0].dptr<T>();
      Map<T>(ctx.run_ctx, in_grad[0], req[0],
             [x, g = out_grad[0].dptr<T>(), function = function_](int64_t i) { return A(g[i]) * function.Gradient(A(x[i])); });
    });
  }

 private:
  Function function_;
  bool from_output_;
};

class PReLUCpu final : public Operator {
 public:
  PReLUCpu(BroadcastIndex channel, const SlopeSums& sums) : channel_(channel), sums_(sums) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      Map<T>(ctx.run_ctx, out[0], req[0], [&, x = in[0].dptr<T>(), gamma = in[1].dptr<T>()](int64_t i) {
        return A(x[i]) > 0 ? A(x[i]) : A(gamma[channel_(i)]) * A(x[i]);
      });
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* g = out_grad[0].dptr<T>();
      const T* x = in[0].dptr<T>();
      const T* gamma = in[1].dptr<T>();
      Map<T>(ctx.run_ctx, in_grad[0], req[0], [&](int64_t i) { return A(g[i]) * (A(x[i]) > 0 ? A(1) : A(gamma[channel_(i)])); });
      if (req[1] == OpReqType::kNullOp) return;
      const double* sums = sums_.Run(g, x, ctx.workspace.dptr<double>());
      Map<T>(ctx.run_ctx, in_grad[1], req[1], [sums](int64_t i) { return static_cast<A>(sums[i]); });
    });
  }

 private:
  BroadcastIndex channel_;
  SlopeSums sums_;
};

class RReLUCpu final : public Operator {
 public:
  explicit RReLUCpu(const LeakyReLUParam& param) : lower_(param.lower_bound), width_(param.upper_bound - param.lower_bound) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const Resource random = ctx.requested[0];
      const bool draws = ctx.is_train;
      // Rounded to T, so that the output agrees with the mask as it is stored.
      const auto slope = [=, this](int64_t i) {
        return static_cast<A>(static_cast<T>(lower_ + width_ * (draws ? random.Uniform(static_cast<uint64_t>(i)) : 0.5f)));
      };
      Map<T>(ctx.run_ctx, out[1], req[1], slope);
      Map<T>(ctx.run_ctx, out[0], req[0], [=, x = in[0].dptr<T>()](int64_t i) { return A(x[i]) > 0 ? A(x[i]) : slope(i) * A(x[i]); });
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      Map<T>(ctx.run_ctx, in_grad[0], req[0], [g = out_grad[0].dptr<T>(), y = out[0].dptr<T>(), mask = out[1].dptr<T>()](int64_t i) {
        return A(g[i]) * (A(y[i]) > 0 ? A(1) : A(mask[i]));
      });
    });
  }

 private:
  float lower_, width_;
};

template <typename Function>
Plan PlanRectifier(const LeakyReLUProperty& property, const PlanRequest& request, Function function) {
  Plan plan = FlatPlan(property, request, true);
  plan.make = [function, from_output = property.GradientFromOutput()] {
    return std::make_unique<RectifierCpu<Function>>(function, from_output);
  };
  return plan;
}

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const auto& property = static_cast<const LeakyReLUProperty&>(base);
  const LeakyReLUParam& param = property.param();
  switch (param.act_type) {
    case kLeaky:
      return PlanRectifier(property, request, LeakyFunction{param.slope});
    case kELU:
      return PlanRectifier(property, request, ELUFunction{param.slope, property.GradientFromOutput()});
    case kSELU:
      return PlanRectifier(property, request, SELUFunction{});
    case kGELU:
      return PlanRectifier(property, request, GELUFunction{});
    default:
      break;
  }
  Plan plan = PlainPlan(property, request);
  if (param.act_type == kRReLU) {
    plan.make = [param] { return std::make_unique<RReLUCpu>(param); };
  } else {
    const TShape gamma = LeakyReLUProperty::ExpandGamma(request.in[1].shape, request.in[0].shape);
    const SlopeSums sums(request.in[0].shape, gamma);
    plan.backward_workspace = request.needs_backward ? sums.workspace_bytes() : 0;
    plan.make = [channel = BroadcastIndex(request.in[0].shape, gamma), sums] { return std::make_unique<PReLUCpu>(channel, sums); };
  }
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(leaky_relu_cpu, registry) {
  registry.AddRow({"LeakyReLU", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
