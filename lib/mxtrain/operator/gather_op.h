// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators whose output is rows of their data, selected by indices: Embedding, take, pick,
// gather_nd. Each describes itself by a Setup, made from its parameters:
//
//   struct TakeSetup : GatherSetup {
//     static constexpr const char* kName = "take";
//     // Whether two indices may select one row. Its gradient is then a sum, in the order of the
//     // indices.
//     static constexpr bool kRepeats = true;
//     explicit TakeSetup(const TakeParam& param);
//     RowGrid GridOf(const TShape& data, const TShape& indices) const;
//     // Rows of the data per outer index of the grid; only if kRepeats.
//     int64_t RowsOf(const TShape& data, const TShape& indices) const;
//     TakePlaces PlacesOf(const TShape& data, const TBlob& indices) const;
//   };
#include <memory>

#include "mxtrain/operator/gather.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {

// What a Setup may define otherwise.
struct GatherSetup {
  static constexpr size_t kData = 0, kIndices = 1;  // arguments
  // Throws kData for indices that are errors.
  template <typename Device>
  void Check(const Device&, const TShape&, const TBlob&) const {}
  bool raises() const { return false; }  // Check is needed for a defined result; a GPU refuses
};

template <typename Setup, typename Device>
class GatherOperator final : public Operator {
 public:
  explicit GatherOperator(const Setup& setup) : setup_(setup) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[Setup::kData], &indices = args.in_data[Setup::kIndices];
    const Device device{args.ctx.run_ctx};
    setup_.Check(device, data.shape, indices);
    GatherRows(device, setup_.GridOf(data.shape, indices.shape),
               setup_.PlacesOf(data.shape, indices), data, args.req[0], args.out_data[0],
               Setup::kName);
  }

  void Backward(const BackwardArgs& args) override {
    const OpReqType req = args.req[Setup::kData];
    if (req == OpReqType::kNullOp) return;
    const TBlob &grad = args.in_grad[Setup::kData], &indices = args.in_data[Setup::kIndices];
    const Device device{args.ctx.run_ctx};
    const RowGrid grid = setup_.GridOf(grad.shape, indices.shape);
    const auto places = setup_.PlacesOf(grad.shape, indices);
    if constexpr (Setup::kRepeats) {
      SumRows(device, grid, places, setup_.RowsOf(grad.shape, indices.shape), args.out_grad[0], req,
              grad, args.ctx.workspace.data, Setup::kName);
    } else {
      ZeroBlob(device, req, grad);
      ScatterRows(device, grid, places, args.out_grad[0], req, grad, Setup::kName);
    }
  }

 private:
  Setup setup_;
};

template <typename Setup, typename Property, typename Device>
KernelEntry GatherKernel() {
  const auto plan_gather = [](const OperatorProperty& base, const PlanRequest& request,
                              Backend&) -> Expected<Plan, Refusal> {
    const Setup setup(static_cast<const Property&>(base).param());
    if (setup.raises() && Device::kType == DeviceType::kGPU)
      return Refusal{"a GPU cannot raise an error for an index; use mode clip or wrap"};
    Plan plan = PlainPlan(base, request);
    const TensorSpec& out = request.out[0];
    plan.cost = MoveCost(2 * static_cast<double>(out.shape.Size() * SizeOf(out.type)));
    if constexpr (Setup::kRepeats) {
      const TShape &data = request.in[Setup::kData].shape,
                   &indices = request.in[Setup::kIndices].shape;
      const RowGrid grid = setup.GridOf(data, indices);
      if (request.needs_backward) {
        if (std::max(grid.count, setup.RowsOf(data, indices)) > kMostSummedRows)
          return Refusal{format("its gradient takes at most {} rows", kMostSummedRows)};
        plan.backward_workspace = BytesOfSumRows<Device>(grid);
      }
    }
    plan.make = [setup] { return std::make_unique<GatherOperator<Setup, Device>>(setup); };
    return plan;
  };
  return LastKernel<Device>(Setup::kName, plan_gather, Takes::kEveryType);
}

}  // namespace mxtrain
