// SPDX-License-Identifier: Apache-2.0
#pragma once
// The updates for devices that work in teams (operator/rows.h): many weights in one kernel. The CPU
// has its own loops.
#include <memory>

#include "mxtrain/operator/array_table.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/optimizer_update/update_plan.h"

namespace mxtrain::optimizer_update {

template <typename T>
struct Weight : Arrays<T> {
  int64_t size;  // stored elements
  OpReqType req;
};

// The scalars of the step are read on the device: a captured graph sees their current values.
template <typename Rule>
struct Rules {
  using C = decltype(Rule::lr);
  typename Rule::Param param;
  const float* scalars;  // [weights, kNumScalars]
  MXTRAIN_HD Rule Of(int64_t n) const {
    return Rule(StepOf<C>(scalars + n * kNumScalars, param.clip_gradient), param);
  }
};

template <typename Rule, typename T>
struct Measured {
  Rule rule;
  Weight<T> weight;
  MXTRAIN_HD Squares operator()(int64_t i) const {
    return rule.Skipped() ? Squares() : MeasureAt<Rule, ComputeOf<T>>(rule, weight, i);
  }
};
template <typename Rule, typename T>
struct MeasuredOf {
  Rules<Rule> rules;
  MXTRAIN_HD Measured<Rule, T> operator()(const Weight<T>& weight, int64_t n) const {
    return {rules.Of(n), weight};
  }
};

template <typename Rule, typename T>
struct UpdatePart {
  using C = ComputeOf<T>;
  Rules<Rule> rules;
  const Squares* squares;  // of each weight, for rules with a ratio
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, const Weight<T>& weight,
                             const ArrayPart& part) const {
    Rule rule = rules.Of(part.array);
    if constexpr (kHasRatio<Rule>) rule.ratio = RatioOf(rule, squares[part.array]);
    for (int64_t i = part.begin + team.rank(); i < part.end; i += team.size()) {
      const C w =
          rule.Skipped() ? static_cast<C>(weight.weight[i]) : UpdateAt<Rule, C>(rule, weight, i);
      if (weight.req != OpReqType::kNullOp) Assign(weight.req, weight.out, i, w);
    }
  }
};

template <template <typename> class Rule, typename Device>
class UpdateByTeams final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  explicit UpdateByTeams(const Param& param) : param_(param) {}

  // For rules with a ratio: the squares of each weight, then of its chunks.
  static int64_t WorkspaceBytes(const std::vector<int64_t>& sizes) {
    if (!kHasRatio<Rule<float>>) return 0;
    int64_t count = static_cast<int64_t>(sizes.size());
    for (const int64_t size : sizes) count += ChunksOf(size);
    return count * static_cast<int64_t>(sizeof(Squares));
  }

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = Rule<ComputeOf<T>>;
      const Rules<R> rules{param_, args.in_data.back().dptr<float>()};
      const auto weight_of = [&](size_t n) {
        return Weight<T>{ArraysOf<T>(Places(n, args.out_data.size(), kStatesOf<R>), args.in_data,
                                     args.out_data, args.aux_states),
                         args.in_data[n].StoredSize(), args.req[n]};
      };
      auto* squares = args.ctx.workspace.dptr<Squares>();
      ForTables<Weight<T>>(
          args.out_data.size(), weight_of, [&](const ArrayTable<Weight<T>>& table) {
            if constexpr (kHasRatio<R>)
              SumArrays(device, table, MeasuredOf<R, T>{rules}, squares + args.out_data.size(),
                        OpReqType::kWriteTo, squares);
            ForChunks(device, table, UpdatePart<R, T>{rules, squares});
          });
    });
  }

 private:
  Param param_;
};

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachRule([&registry](auto tag) {
    using Tag = decltype(tag);
    const char* const op = Tag::template Rule<float>::kName;
    registry.AddKernel(LastKernel<Device>(
        op,
        [](const OperatorProperty& property, const PlanRequest& request,
           Backend&) -> Expected<Plan, Refusal> {
          using Param = typename Tag::template Rule<float>::Param;
          if (static_cast<const PropertyWithParam<Param>&>(property).param().rows)
            return Refusal{"only the CPU updates rows alone"};
          return MakePlan<Tag::template Rule>(
              property, request,
              [](const auto& param, const std::vector<int64_t>& sizes, Plan* plan) {
                using Op = UpdateByTeams<Tag::template Rule, Device>;
                plan->forward_workspace = Op::WorkspaceBytes(sizes);
                plan->make = [param] { return std::make_unique<Op>(param); };
              });
        }));
  });
}

}  // namespace mxtrain::optimizer_update

MXTRAIN_KERNELS(optimizer_update, Device, registry) {
  using namespace mxtrain;
  if constexpr (Device::kType == DeviceType::kGPU)
    optimizer_update::AddKernels<Device>(registry);  // the CPU's: optimizer_update_cpu.cc
}
