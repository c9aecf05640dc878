// SPDX-License-Identifier: Apache-2.0
#pragma once
// multi_sum_sq and clip_global_norm, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/operator/array_table.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/reduction.h"
#include "mxtrain/operators/global_norm/global_norm.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::global_norm {

struct Array {
  NumberReader elements;
  int64_t size;  // stored elements: padding is zero and adds nothing
};

struct SquareFold : SumFold {
  MXTRAIN_HD static double Step(double sum, double x) { return sum + x * x; }
};

struct Square {
  Array array;
  MXTRAIN_HD double operator()(int64_t k) const {
    const double x = array.elements.Number(k);
    return x * x;
  }
  double SumOf(int64_t begin, int64_t end) const {
    double sum = 0;
    SwitchFloating(array.elements.type, "multi_sum_sq", [&](auto tag) {
      using T = typename decltype(tag)::type;
      sum = FoldRow<SquareFold>(static_cast<const T*>(array.elements.data) + begin, end - begin);
    });
    return sum;
  }
};
struct SquaresOf {
  MXTRAIN_HD Square operator()(const Array& array, int64_t) const { return {array}; }
};

template <typename Device>
class MultiSumSq final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    ForTables<Array>(
        args.in_data.size(),
        [&](size_t n) {
          return Array{NumberReader(args.in_data[n]), args.in_data[n].StoredSize()};
        },
        [&](const ArrayTable<Array>& table) {
          SumArrays(Device{args.ctx.run_ctx}, table, SquaresOf{}, args.ctx.workspace.dptr<double>(),
                    args.req[0], args.out_data[0].dptr<double>());
        });
  }
};

// Element i of the clipped scalars.
struct Clipped {
  const double* sums;
  int64_t num_sums;
  const float* scalars;
  double max_norm;
  MXTRAIN_HD float operator()(int64_t i) const {
    const float factor = scalars[i];
    if (i % optimizer_update::kNumScalars != optimizer_update::kRescale) return factor;
    double sum = 0;
    for (int64_t n = 0; n < num_sums; ++n) sum += sums[n];
    const double norm = std::abs(static_cast<double>(factor)) * std::sqrt(sum);
    const bool too_long = norm > max_norm && std::isfinite(norm);
    return too_long ? static_cast<float>(static_cast<double>(factor) * (max_norm / norm)) : factor;
  }
};

template <typename Device>
class ClipGlobalNorm final : public Operator {
 public:
  explicit ClipGlobalNorm(const ClipGlobalNormParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    MapOn<float>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0],
                 Clipped{args.in_data[0].dptr<double>(), args.in_data[0].Size(),
                         args.in_data[1].dptr<float>(), param_.max_norm});
  }

 private:
  ClipGlobalNormParam param_;
};

// Arrays keep their layouts.
template <typename Device>
Expected<Plan, Refusal> PlanSums(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(property, request);
  int64_t chunks = 0;
  for (size_t n = 0; n < request.in.size(); ++n) {
    const TensorSpec& spec = request.in[n];
    if (!IsFloating(spec.type)) return Refusal{format("no function for {}", NameOf(spec.type))};
    plan.in[n] = request.in_layout[n].value_or(Layout());
    chunks += ChunksOf(plan.in[n].Bytes(spec.shape, spec.type) / SizeOf(spec.type));
  }
  plan.forward_workspace = chunks * static_cast<int64_t>(sizeof(double));
  plan.make = [] { return std::make_unique<MultiSumSq<Device>>(); };
  return plan;
}

template <typename Device>
Expected<Plan, Refusal> PlanClip(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(property, request);
  plan.make = [param =
                   static_cast<const PropertyWithParam<ClipGlobalNormParam>&>(property).param()] {
    return std::make_unique<ClipGlobalNorm<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::global_norm

MXTRAIN_KERNELS(global_norm, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("multi_sum_sq", global_norm::PlanSums<Device>));
  registry.AddKernel(LastKernel<Device>("clip_global_norm", global_norm::PlanClip<Device>));
}
