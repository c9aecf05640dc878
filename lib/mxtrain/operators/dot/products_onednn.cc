// SPDX-License-Identifier: Apache-2.0
// dot and batch_dot by oneDNN's matrix product, which sums in float32.
#include <algorithm>
#include <optional>
#include <utility>

#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operators/batch_dot/batch_dot.h"
#include "mxtrain/operators/dot/dot.h"

namespace mxtrain::dot {
namespace {

using onednn::Arg;

// One product. The library wants the rows of the result contiguous; else its transpose is computed.
struct Multiplication {
  onednn::Descriptor descriptor;
  bool transposed;
};

Expected<Multiplication, Refusal> Describe(Backend& backend, const MatrixView& a,
                                           const MatrixView& b, const MatrixView& c, DType type,
                                           OpReqType req) {
  const bool transposed = c.column_stride != 1, accumulate = req == OpReqType::kAddTo;
  const onednn::MatrixProduct product =
      transposed
          ? onednn::MatrixProduct{b.Transposed(), a.Transposed(), c.Transposed(), type, accumulate}
          : onednn::MatrixProduct{a, b, c, type, accumulate};
  const onednn::Result result = onednn::Multiply(backend, product);
  if (!result) return result.error();
  if (result->speed() == onednn::Speed::kReference)
    return Refusal{"oneDNN has only a loop over elements for it"};
  return Multiplication{*result, transposed};
}

int64_t ScratchpadBytes(const std::optional<Multiplication>& m) {
  return m ? m->descriptor.scratchpad_bytes() : 0;
}

class Multiplier {
 public:
  explicit Multiplier(const std::optional<Multiplication>& m) {
    if (!m) return;
    primitive_ = m->descriptor.Make();
    transposed_ = m->transposed;
  }
  void operator()(const OpContext& ctx, void* a, void* b, void* c, OpReqType req) {
    if (req == OpReqType::kNullOp) return;
    if (transposed_) std::swap(a, b);
    primitive_->Execute({{Arg::kSrc, a},
                         {Arg::kWeights, b},
                         {Arg::kDst, c},
                         {Arg::kScratchpad, ctx.workspace.data}});
  }

 private:
  std::unique_ptr<onednn::Primitive> primitive_;
  bool transposed_ = false;
};

// nullopt: not wanted.
struct Multiplications {
  std::optional<Multiplication> forward, left, right;
};

class ProductsOneDnn final : public Operator {
 public:
  explicit ProductsOneDnn(const Multiplications& m)
      : forward_(m.forward), left_(m.left), right_(m.right) {}

  void Forward(const ForwardArgs& args) override {
    forward_(args.ctx, args.in_data[0].data, args.in_data[1].data, args.out_data[0].data,
             args.req[0]);
  }
  void Backward(const BackwardArgs& args) override {
    left_(args.ctx, args.out_grad[0].data, args.in_data[1].data, args.in_grad[0].data, args.req[0]);
    right_(args.ctx, args.in_data[0].data, args.out_grad[0].data, args.in_grad[1].data,
           args.req[1]);
  }

 private:
  Multiplier forward_, left_, right_;
};

template <typename Property>
Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& property, const PlanRequest& request,
                                   Backend& backend) {
  const DType type = request.in[0].type;
  if (std::string why = onednn::WhyNotType(type); !why.empty()) return Refusal{why};
  const auto& [a, b, c] = ViewsOf<Property>(property, request);
  if (c.batch * c.rows * c.columns * a.columns == 0) return Refusal{"empty array"};
  Plan plan = PlainPlan(property, request);
  constexpr double kNanosecondsPerProduct = 0.02;  // of one thread with AVX2
  plan.cost +=
      kNanosecondsPerProduct *
      property.ForwardFlops({request.in[0].shape, request.in[1].shape}, {request.out[0].shape}) /
      std::max(request.threads, 1);
  Multiplications all;
  const auto describe = [&](const MatrixView& left, const MatrixView& right,
                            const MatrixView& result, OpReqType req,
                            std::optional<Multiplication>* into) -> std::optional<Refusal> {
    if (req == OpReqType::kNullOp) return std::nullopt;
    const Expected<Multiplication, Refusal> described =
        Describe(backend, left, right, result, type, req);
    if (!described) return described.error();
    *into = *described;
    return std::nullopt;
  };
  std::optional<Refusal> refusal = describe(a, b, c, request.out_req[0], &all.forward);
  if (request.needs_backward) {
    const std::span<const OpReqType> req = request.grad_req;
    if (!refusal) refusal = describe(c, b.Transposed(), a, req[0], &all.left);
    if (!refusal) refusal = describe(a.Transposed(), c, b, req[1], &all.right);
  }
  if (refusal) return *refusal;
  plan.forward_workspace = ScratchpadBytes(all.forward);
  plan.backward_workspace = std::max(ScratchpadBytes(all.left), ScratchpadBytes(all.right));
  plan.make = [all] { return std::make_unique<ProductsOneDnn>(all); };
  return plan;
}

}  // namespace
}  // namespace mxtrain::dot

MXTRAIN_OPERATOR(products_onednn, registry) {
  using namespace mxtrain;
  registry.AddKernel({"dot", DeviceType::kCPU, "onednn", 100, dot::PlanOneDnn<dot::DotProperty>});
  registry.AddKernel(
      {"batch_dot", DeviceType::kCPU, "onednn", 100, dot::PlanOneDnn<dot::BatchDotProperty>});
}
