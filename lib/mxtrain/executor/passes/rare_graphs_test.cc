// SPDX-License-Identifier: Apache-2.0
// Unusual graphs: scratch and draws in evaluation, heads that depend only on parameters, branches
// that no gradient reaches, half precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;

BindRequest EvaluationOf(const std::map<std::string, TShape>& shapes,
                         std::set<std::string> inputs) {
  BindRequest request;
  request.is_train = false;
  request.shapes = shapes;
  request.inputs = std::move(inputs);
  return request;
}

bool IsPrecomputed(const Executor& executor, const std::string& name) {
  for (const auto& node : executor.graph().nodes) {
    if (node.name == name) return node.precomputed;
  }
  FAIL("no node " << name);
  return false;
}

TEST_CASE("an operator whose scratch depends on its shapes runs in an evaluation executor") {
  const auto runtime = NewRuntime();
  const Symbol loss =
      Layer("softmax_cross_entropy", "loss", {Symbol::Variable("data"), Symbol::Variable("label")});
  const auto executor = Executor::SimpleBind(
      *runtime, loss, EvaluationOf({{"data", {2, 2}}, {"label", {2}}}, {"data", "label"}));
  NDArray data(*runtime, {2, 2}), label(*runtime, {2});
  SetValues(data, {0, 0, 1, 3});
  SetValues(label, {1, 0});
  executor->Forward(std::vector<NDArray>{data, label});
  CHECK(GetValues(executor->outputs()[0])[0] ==
        doctest::Approx(std::log(2) + std::log(1 + std::exp(2))));
}

TEST_CASE("what reads a head is computed after it, even if both follow from parameters alone") {
  const auto runtime = NewRuntime();
  const Symbol weight = Symbol::Variable("weight");
  const Symbol head = Layer("Activation", "head", {weight}, {{"act_type", "relu"}});
  const Symbol twice = Layer("_plus_scalar", "shifted", {head}, {{"scalar", "1"}});
  const Symbol sum = Layer("elemwise_add", "sum", {Symbol::Variable("data"), twice});
  const Symbol apart = Layer("elemwise_add", "apart",
                             {sum, Layer("_mul_scalar", "scaled", {weight}, {{"scalar", "2"}})});
  const auto executor =
      Executor::SimpleBind(*runtime, Symbol::Group(std::vector<Symbol>{head, apart}),
                           EvaluationOf({{"data", {3}}, {"weight", {3}}}, {"data"}));
  CHECK_FALSE(IsPrecomputed(*executor, "shifted"));
  CHECK(IsPrecomputed(*executor, "scaled"));
  NDArray data(*runtime, {3});
  SetValues(data, {10, 20, 30});
  executor->outputs()[0].WaitToRead();
  NDArray(executor->outputs()[0]).Fill(-77);
  for (double w : {2.0, 5.0}) {
    NDArray(executor->arg("weight")).Fill(w);
    executor->Forward(std::vector<NDArray>{data});
    CHECK(GetValues(executor->outputs()[0]) == std::vector<double>{w, w, w});
    CHECK(GetValues(executor->outputs()[1]) ==
          std::vector<double>{11 + 3 * w, 21 + 3 * w, 31 + 3 * w});
  }
}

// A fold that treats the wide statistics as narrow ones gives completely different numbers;
// rounding stays within some units of 2^-8.
TEST_CASE(
    "a batch norm folds into a convolution in half precision too, with its statistics in float32") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[1];
  for (DType type : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
    CAPTURE(NameOf(type));
    BindRequest request = RequestFor(net, net.features, type);
    request.is_train = false;
    request.grad_req.clear();
    const auto folded = BindWithValues(*runtime, net.features, request);
    const auto& nodes = folded->graph().nodes;
    CHECK(std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return node.precomputed && node.op->TypeString() == "_FoldBatchNorm";
    }));
    request.fuse = false;
    const auto apart = BindWithValues(*runtime, net.features, request);
    const auto inputs = MakeInputs(*runtime, net, folded->input_names(), type);
    for (const auto* executor : {&folded, &apart}) (*executor)->Forward(inputs);
    const auto got = GetValues(folded->outputs()[0]), expected = GetValues(apart->outputs()[0]);
    double largest = 0;
    for (double v : expected) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= 0.05 * largest);
  }
}

TEST_CASE("kernels that no gradient reaches save nothing for a backward pass") {
  for (const char* pool : {"Pooling", "LRN"}) {
    CAPTURE(pool);
    const auto runtime = NewRuntime();
    const Kwargs kwargs = pool == std::string("LRN")
                              ? Kwargs{{"nsize", "3"}}
                              : Kwargs{{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}};
    const Symbol data = Symbol::Variable("data");
    const Symbol conv =
        Layer("Convolution", "conv", {data}, {{"num_filter", "8"}, {"kernel", "(3, 3)"}});
    const Symbol blocked =
        Layer("BlockGrad", "blocked", {Layer(pool, "unreached", {conv}, kwargs)});
    const Symbol loss = Layer(
        "MakeLoss", "loss",
        {Layer("FullyConnected", "fc", {Layer("Flatten", "flat", {conv})}, {{"num_hidden", "2"}})});
    BindRequest request;
    request.inputs = {"data"};
    request.shapes["data"] = {2, 3, 8, 8};
    for (const char* name : {"conv_weight", "fc_weight"}) request.grad_req[name] = GradReq::kWrite;
    const auto executor =
        BindWithValues(*runtime, Symbol::Group(std::vector<Symbol>{loss, blocked}), request);
    for (const auto& node : executor->graph().nodes) {
      if (node.name == "unreached")
        CHECK(node.specs.size() == static_cast<size_t>(node.op->NumOutputs()));
      CHECK(node.name != "unreached_backward");
      CHECK(node.name != "blocked_backward");
    }
    BindRequest reference = request;
    reference.reference_kernels = true;
    const auto expected =
        BindWithValues(*runtime, Symbol::Group(std::vector<Symbol>{loss, blocked}), reference);
    NDArray input(*runtime, {2, 3, 8, 8});
    SetValues(input, ValuesFor("data", input.shape().Size()));
    for (const auto* e : {&executor, &expected}) (*e)->Step(std::vector<NDArray>{input});
    for (size_t o = 0; o < 2; ++o) {
      const auto got = GetValues(executor->outputs()[o]), want = GetValues(expected->outputs()[o]);
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-4));
    }
    const auto got = GetValues(executor->grad("conv_weight")),
               want = GetValues(expected->grad("conv_weight"));
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-3));
  }
}

// The identity; its kernel requests zero bytes of scratch and a random stream, and reports whether
// it got exactly that.
class AsksForNothing final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "AsksForNothing"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  bool HasGradient(int) const override { return false; }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in) const override {
    return {{ResourceRequest::kTempSpace, in.at(0).Size() - 3}, {ResourceRequest::kRandom, 0}};
  }
};

class AsksForNothingCpu final : public Operator {
 public:
  explicit AsksForNothingCpu(const NoParam&) {}
  void Forward(const ForwardArgs& args) override {
    float* y = args.out_data[0].dptr<float>();
    y[0] = args.ctx.requested[0].type == ResourceRequest::kTempSpace;
    y[1] = static_cast<float>(args.ctx.requested[0].bytes);
    y[2] = args.ctx.requested[1].type == ResourceRequest::kRandom;
  }
};

TEST_CASE("scratch of zero bytes stays scratch") {
  auto registry = BuiltinOperators();
  registry->AddProperty("AsksForNothing", {}, [] { return std::make_unique<AsksForNothing>(); });
  registry->AddKernel(ReferenceKernel<AsksForNothing, AsksForNothingCpu>("AsksForNothing"));
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, registry);
  const Symbol net = Symbol::Create(*registry, "AsksForNothing", "op", {},
                                    std::vector<Symbol>{Symbol::Variable("data")});
  const auto executor = Executor::SimpleBind(runtime, net, EvaluationOf({{"data", {3}}}, {"data"}));
  executor->Forward(
      std::vector<NDArray>{NDArray::FromVector(runtime, {3}, std::vector<float>{1, 2, 3})});
  CHECK(GetValues(executor->outputs()[0]) == std::vector<double>{1, 0, 1});
}

}  // namespace
}  // namespace mxtrain::test
