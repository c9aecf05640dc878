// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counted_square.h"

#include <algorithm>

#include "mxtrain/operator/plans.h"

namespace mxtrain::test {
namespace {

class CountedSquareProperty final : public OperatorProperty {
 public:
  std::string TypeString() const override { return "CountedSquare"; }
  void Init(const Kwargs& kwargs) override { NoParam().Init(kwargs, TypeString()); }
  Kwargs GetParams() const override { return {}; }
  std::vector<FieldInfo> DescribeParams() const override { return {}; }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"count"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    *aux = {TShape{1}};
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in) const override {
    return {{ResourceRequest::kTempSpace, in[0].Size() * 4},
            {ResourceRequest::kTempSpace, ResourceRequest::kUnknownSize}};
  }
  std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>& in) const override {
    return ForwardResource(in);
  }
};

class CountedSquare final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    const TBlob& x = args.in_data[0];
    const int64_t n = x.Size();
    float* squares = args.ctx.requested[0].GetSpace<float>(n);
    float* counts = args.ctx.requested[1].GetSpace<float>(n);
    float* copy = args.ctx.workspace.dptr<float>();
    float* count = args.aux_states[0].dptr<float>();
    if (args.ctx.is_train) ++*count;
    for (int64_t i = 0; i < n; ++i) copy[i] = x.dptr<float>()[i];
    std::fill_n(counts, n, *count);
    for (int64_t i = 0; i < n; ++i) squares[i] = copy[i] * copy[i] + counts[i];
    if (!args.ctx.saved.empty()) std::copy_n(copy, n, args.ctx.saved[0].dptr<float>());
    Put(squares, n, args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    const int64_t n = args.in_grad[0].Size();
    float* gradient = args.ctx.requested[0].GetSpace<float>(n);
    float* doubled = args.ctx.workspace.dptr<float>();
    for (int64_t i = 0; i < n; ++i) doubled[i] = 2 * args.ctx.saved[0].dptr<float>()[i];
    for (int64_t i = 0; i < n; ++i) gradient[i] = doubled[i] * args.out_grad[0].dptr<float>()[i];
    Put(gradient, n, args.req[0], args.in_grad[0]);
  }

 private:
  static void Put(const float* values, int64_t n, OpReqType req, const TBlob& to) {
    for (int64_t i = 0; i < n && req != OpReqType::kNullOp; ++i) {
      float& element = to.dptr<float>()[i];
      element = req == OpReqType::kAddTo ? element + values[i] : values[i];
    }
  }
};

}  // namespace

void AddCountedSquare(OperatorRegistry* registry) {
  registry->AddProperty("CountedSquare", {},
                        [] { return std::make_unique<CountedSquareProperty>(); });
  registry->AddKernel({"CountedSquare", DeviceType::kCPU, "ref", kRefRank,
                       [](const OperatorProperty& property, const PlanRequest& request,
                          Backend&) -> Expected<Plan, Refusal> {
                         if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
                         Plan plan = PlainPlan(property, request);
                         const int64_t bytes = request.in[0].shape.Size() * 4;
                         plan.forward_workspace = plan.backward_workspace = bytes;
                         if (request.needs_backward) plan.saved = {bytes};
                         plan.make = [] { return std::make_unique<CountedSquare>(); };
                         return plan;
                       }});
}

SmallNet SquareNet(const OperatorRegistry& registry) {
  const auto layer = [&](const char* op, const char* name, std::vector<Symbol> inputs,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(registry, op, name, kwargs, inputs);
  };
  const Symbol fc1 =
      layer("FullyConnected", "fc1", {Symbol::Variable("data")}, {{"num_hidden", "5"}});
  const Symbol square = layer("CountedSquare", "square", {fc1});
  const Symbol twice = layer("_Plus", "twice", {square, fc1});
  const Symbol again = layer("CountedSquare", "again", {twice});
  const Symbol sum = layer("_Plus", "sum", {again, square});
  const Symbol fc2 = layer("FullyConnected", "fc2", {sum}, {{"num_hidden", "3"}});
  return {"square",
          layer("SoftmaxOutput", "softmax", {fc2}),
          fc2,
          {{"data", {4, 6}}},
          {{"softmax_label", {4}}},
          3};
}

}  // namespace mxtrain::test
