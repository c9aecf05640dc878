// SPDX-License-Identifier: Apache-2.0
#pragma once
// gather_nd and scatter_nd gather and scatter rows: what follows the axes of the points.
#include "mxtrain/operator/gather_op.h"
#include "mxtrain/operators/gather_nd/gather_nd.h"

namespace mxtrain {

struct GatherNdSetup : GatherSetup {
  static constexpr const char* kName = "gather_nd";
  static constexpr bool kRepeats = true;

  explicit GatherNdSetup(const NoParam&) {}
  RowGrid GridOf(const TShape& data, const TShape& indices) const {
    return {1, indices.Product(1, indices.ndim()),
            data.Product(static_cast<int>(indices[0]), data.ndim())};
  }
  int64_t RowsOf(const TShape& data, const TShape& indices) const {
    return data.Product(0, static_cast<int>(indices[0]));
  }
  NdPlaces PlacesOf(const TShape& data, const TBlob& indices) const { return {data, indices}; }
  template <typename Device>
  void Check(const Device& device, const TShape& data, const TBlob& indices) const {
    CheckPoints(device, data, indices, kName);
  }
  template <typename Device>
  static void CheckPoints(const Device& device, const TShape& data, const TBlob& indices,
                          const char* who) {
    const int64_t points = indices.shape.Product(1, indices.shape.ndim());
    for (int a = 0; a < indices.shape[0]; ++a) {
      CheckIndices(device, NumberReader(indices), a * points, (a + 1) * points, -data[a], data[a],
                   who);
    }
  }
};

template <typename Device>
class ScatterNd final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    const TBlob &data = args.in_data[0], &indices = args.in_data[1], &out = args.out_data[0];
    if (args.req[0] == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    GatherNdSetup::CheckPoints(device, out.shape, indices, "scatter_nd");
    LastRows(device, setup_.GridOf(out.shape, indices.shape), setup_.PlacesOf(out.shape, indices),
             setup_.RowsOf(out.shape, indices.shape), data, args.req[0], out,
             args.ctx.workspace.data, "scatter_nd");
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob &head = args.out_grad[0], &indices = args.in_data[1];
    GatherRows(Device{args.ctx.run_ctx}, setup_.GridOf(head.shape, indices.shape),
               setup_.PlacesOf(head.shape, indices), head, args.req[0], args.in_grad[0],
               "scatter_nd");
  }

 private:
  GatherNdSetup setup_{NoParam()};
};

template <typename Device>
Expected<Plan, Refusal> PlanScatterNd(const OperatorProperty& base, const PlanRequest& request,
                                      Backend&) {
  const GatherNdSetup setup{NoParam()};
  const TShape &out = request.out[0].shape, &indices = request.in[1].shape;
  const RowGrid grid = setup.GridOf(out, indices);
  if (std::max(grid.count, setup.RowsOf(out, indices)) > kMostSummedRows)
    return Refusal{format("it takes at most {} rows", kMostSummedRows)};
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = BytesOfSumRows<Device>(grid);
  plan.make = [] { return std::make_unique<ScatterNd<Device>>(); };
  return plan;
}

}  // namespace mxtrain

MXTRAIN_KERNELS(gather_nd, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(GatherKernel<GatherNdSetup, GatherNdProperty, Device>());
  registry.AddKernel(LastKernel<Device>("scatter_nd", PlanScatterNd<Device>, Takes::kEveryType));
}
