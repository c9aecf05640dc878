// SPDX-License-Identifier: Apache-2.0
#pragma once
// cumsum: sums of the elements up to and including each, along an axis; without an axis those of
// the flattened array, as a vector. The gradient is the same from the other end. Sums of another
// type are those of the data cast to it.
#include <memory>
#include <optional>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_split.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain::cumsum {

struct CumsumParam : Parameter<CumsumParam> {
  std::optional<int> axis;
  std::optional<DType> dtype;
  static void Declare(Fields<CumsumParam>& f) {
    f.Add("axis", &CumsumParam::axis)
        .Default(std::nullopt)
        .Help("axis of the sums, negative from the end; None: the array is flattened");
    f.Add("dtype", &CumsumParam::dtype)
        .Default(std::nullopt)
        .Help("type of the sums; None: that of the data");
  }
};

class CumsumProperty final : public PropertyWithParam<CumsumParam> {
 public:
  std::string TypeString() const override { return "cumsum"; }
  std::string Description() const override {
    return "sums of the elements up to each, along an axis";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  bool Lower(Lowering* graph) const override;
};

// The columns of an array along the axis.
inline AxisSplit ColumnsOf(const TShape& shape, const CumsumParam& param) {
  if (param.axis) return {shape, CheckAxis(*param.axis, shape, "cumsum")};
  AxisSplit split;
  split.length = shape.Size();
  return split;
}

// Sums over a column, from its first element or from its last one.
template <typename T>
struct ScanColumn {
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  AxisSplit split;
  bool from_last;
  const T* x;
  T* y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t column) const {
    if (team.rank() != 0) return;
    const int64_t first = column / split.inner * split.length * split.inner + column % split.inner;
    A sum = 0;
    for (int64_t k = 0; k < split.length; ++k) {
      const int64_t i = first + (from_last ? split.length - 1 - k : k) * split.inner;
      sum = Plus(sum, static_cast<A>(x[i]));
      Assign(req, y, i, sum);
    }
  }
};

template <typename Device>
class Cumsum final : public Operator {
 public:
  explicit Cumsum(const CumsumParam& param) : param_(param) {}
  void Forward(const ForwardArgs& args) override {
    Scan(args.ctx, args.in_data[0], args.in_data[0].shape, false, args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Scan(args.ctx, args.out_grad[0], args.in_grad[0].shape, true, args.req[0], args.in_grad[0]);
  }

 private:
  // `shape`: of the data.
  void Scan(const OpContext& ctx, const TBlob& from, const TShape& shape, bool from_last,
            OpReqType req, const TBlob& to) const {
    if (req == OpReqType::kNullOp) return;
    const AxisSplit split = ColumnsOf(shape, param_);
    if (shape.Size() == 0) return;
    SwitchType(from.type, "cumsum", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForColumns(Device{ctx.run_ctx}, split.columns(), split.length,
                 ScanColumn<T>{split, from_last, from.dptr<T>(), to.dptr<T>(), req});
    });
  }

  CumsumParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  if (request.in[0].type != request.out[0].type) return Refusal{"sums of the data's type only"};
  Plan plan = PlainPlan(base, request);
  plan.make = [param = static_cast<const CumsumProperty&>(base).param()] {
    return std::make_unique<Cumsum<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::cumsum

MXTRAIN_KERNELS(cumsum, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("cumsum", cumsum::MakePlan<Device>, Takes::kEveryType));
}
