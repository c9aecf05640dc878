// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operators whose results are matrix products, C = A B: dot and batch_dot. Their properties
// have Views(lhs shape, rhs shape); the kernels here are written once for both, and those of this
// header for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/dot/matrix_product.h"

namespace mxtrain::dot {

struct ProductViews {
  MatrixView a, b, c;
};

template <typename Device>
class Products final : public Operator {
 public:
  Products(const ProductViews& views, Math math) : views_(views), math_(math) {}

  void Forward(const ForwardArgs& args) override {
    const auto& [a, b, c] = views_;
    MultiplyMatrices(Device{args.ctx.run_ctx}, math_, args.in_data[0], a, args.in_data[1], b,
                     args.out_data[0], c, args.req[0]);
  }
  // dA = dC B', dB = A' dC.
  void Backward(const BackwardArgs& args) override {
    const auto& [a, b, c] = views_;
    MultiplyMatrices(Device{args.ctx.run_ctx}, math_, args.out_grad[0], c, args.in_data[1],
                     b.Transposed(), args.in_grad[0], a, args.req[0]);
    MultiplyMatrices(Device{args.ctx.run_ctx}, math_, args.in_data[0], a.Transposed(),
                     args.out_grad[0], c, args.in_grad[1], b, args.req[1]);
  }

 private:
  ProductViews views_;
  Math math_;
};

template <typename Property>
ProductViews ViewsOf(const OperatorProperty& property, const PlanRequest& request) {
  return static_cast<const Property&>(property).Views(request.in[0].shape, request.in[1].shape);
}

template <typename Property, typename Device>
Expected<Plan, Refusal> PlanProducts(const OperatorProperty& property, const PlanRequest& request,
                                     Backend&) {
  if (!IsFloating(request.in[0].type))
    return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const ProductViews views = ViewsOf<Property>(property, request);
  Plan plan = PlainPlan(property, request);
  plan.cost += ProductCost(views.a, views.b);
  plan.make = [views, math = request.math] {
    return std::make_unique<Products<Device>>(views, math);
  };
  return plan;
}

}  // namespace mxtrain::dot
