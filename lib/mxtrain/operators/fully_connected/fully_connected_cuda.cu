// SPDX-License-Identifier: Apache-2.0
// FullyConnected by matrix products. The bias is written to the output before the product is added
// to it.
#include <memory>

#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/convolution/weighted_types.h"
#include "mxtrain/operators/dot/matrix_product.cuh"
#include "mxtrain/operators/fully_connected/fully_connected.h"

namespace mxtrain {
namespace {

using P = FullyConnectedProperty;

MatrixView Rows(int64_t rows, int64_t columns) {
  return {rows, columns, columns, 1};
}

class FullyConnectedCublas final : public Operator {
 public:
  FullyConnectedCublas(const FullyConnectedParam& param, const TShape& weight, int64_t rows,
                       Math math)
      : no_bias_(param.no_bias), hidden_(weight[0]), inputs_(weight[1]), rows_(rows), math_(math) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const OnGpu device{args.ctx.run_ctx};
    const bool prepared = !no_bias_ || inputs_ == 0;
    if (prepared) {
      SwitchFloating(args.out_data[0].type, "FullyConnected", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const TBlob bias = no_bias_ ? TBlob() : args.in_data[P::kBias];
        weighted::PutBias<T>(device, bias, HeadView(), args.out_data[0], args.req[0]);
      });
    }
    if (inputs_ == 0) return;
    dot::MultiplyMatrices(device, math_, args.in_data[P::kData], Rows(rows_, inputs_),
                          args.in_data[P::kWeight], Rows(hidden_, inputs_).Transposed(),
                          args.out_data[0], Rows(rows_, hidden_),
                          prepared ? OpReqType::kAddTo : args.req[0]);
  }

  void Backward(const BackwardArgs& args) override {
    const OnGpu device{args.ctx.run_ctx};
    const MatrixView head = Rows(rows_, hidden_);
    if (rows_ == 0) ZeroBlob(device, args.req[P::kWeight], args.in_grad[P::kWeight]);
    dot::MultiplyMatrices(device, math_, args.out_grad[0], head, args.in_data[P::kWeight],
                          Rows(hidden_, inputs_), args.in_grad[P::kData], Rows(rows_, inputs_),
                          args.req[P::kData]);
    if (rows_ > 0) {
      dot::MultiplyMatrices(device, math_, args.out_grad[0], head.Transposed(),
                            args.in_data[P::kData], Rows(rows_, inputs_), args.in_grad[P::kWeight],
                            Rows(hidden_, inputs_), args.req[P::kWeight]);
    }
    if (no_bias_) return;
    SwitchFloating(args.out_grad[0].type, "FullyConnected", [&](auto tag) {
      weighted::SumToBias<typename decltype(tag)::type>(device, args.out_grad[0], HeadView(),
                                                        args.in_grad[P::kBias], args.req[P::kBias],
                                                        args.ctx.workspace);
    });
  }

 private:
  ChannelView HeadView() const { return {rows_, hidden_, 1}; }

  bool no_bias_;
  int64_t hidden_, inputs_, rows_;
  Math math_;
};

Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  if (!IsFloating(request.in[0].type))
    return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const FullyConnectedParam& param = static_cast<const FullyConnectedProperty&>(base).param();
  const TShape weight = request.in[P::kWeight].shape;
  const int64_t rows = request.out[0].shape.Size() / std::max<int64_t>(weight[0], 1);
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward && !param.no_bias) {
    plan.backward_workspace = weighted::BytesOfBiasSums(request.in[0].type, {rows, weight[0], 1});
  }
  plan.make = [param, weight, rows, math = request.math] {
    return std::make_unique<FullyConnectedCublas>(param, weight, rows, math);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(fully_connected_cuda, registry) {
  registry.AddKernel({"FullyConnected", mxtrain::DeviceType::kGPU, "cublas", mxtrain::kRefRank,
                      mxtrain::MakePlan});
}
