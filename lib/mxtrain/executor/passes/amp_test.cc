// Mixed precision: which entries of a net are narrow, where its parameters and their gradients stay wide, what it does to the numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::ExecNode;
using Kind = Node::Kind;

SmallNet NetOf(const std::string& name) {
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    if (net.name == name) return net;
  }
  FAIL("no net " << name);
  return {};
}

BindRequest AmpRequest(const SmallNet& net, bool reference) {
  BindRequest request = RequestFor(net, net.losses);
  request.amp = DType::kBfloat16;
  request.reference_kernels = reference;
  return request;
}

// The kernels of a machine without bfloat16 are the reference ones.
std::vector<bool> Kernels() {
  return WhyNoBfloat16().empty() ? std::vector{true, false} : std::vector{true};
}

const ExecNode& NodeOf(const ExecGraph& graph, const std::string& name, Kind kind = Kind::kForward) {
  for (const ExecNode& node : graph.nodes) {
    if (node.kind == kind && node.name == name) return node;
  }
  FAIL("no node " << name);
  return graph.nodes[0];
}

TEST_CASE("convolutions, and what stands between them, are narrow; losses, statistics and parameters are wide") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NetOf("residual");
  const BindRequest request = AmpRequest(net, true);
  const ExecGraph graph = executor::RunPasses(net.losses.graph(), request, *runtime);
  for (const char* name : {"stem", "stem_bn", "stem_relu", "left", "left_bn", "sum", "sum_relu", "pool", "flat", "fc"}) {
    CAPTURE(name);
    CHECK(NodeOf(graph, name).specs[0].type == DType::kBfloat16);
  }
  CHECK(NodeOf(graph, "softmax").specs[0].type == DType::kFloat32);
  CHECK(graph.spec(NodeOf(graph, "softmax").inputs[0]).type == DType::kFloat32);
  CHECK(NodeOf(graph, "data_bfloat16").op->TypeString() == "Cast");
  const ExecNode& norm = NodeOf(graph, "stem_bn");
  for (size_t i = 1; i < norm.inputs.size(); ++i) CHECK(graph.spec(norm.inputs[i]).type == DType::kFloat32);
  CHECK(norm.specs[1].type == DType::kFloat32);

  const ExecNode& conv = NodeOf(graph, "stem");
  CHECK(graph.spec(conv.inputs[0]).type == DType::kBfloat16);
  CHECK(graph.spec(conv.inputs[1]).type == DType::kBfloat16);
  CHECK(graph.nodes[conv.inputs[1].node].kind == Kind::kReorder);
  CHECK(graph.spec(conv.inputs[2]).type == DType::kFloat32);  // the bias
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const ExecNode& argument = graph.nodes[graph.arguments[i]];
    CAPTURE(argument.name);
    CHECK(argument.specs[0].type == DType::kFloat32);
    if (graph.gradients[i]) CHECK(graph.spec(graph.gradients[i]) == argument.specs[0]);
  }
}

TEST_CASE("gradients of narrow weights come in float32 from the kernel, in the weight's own layout") {
  if (!WhyNoBfloat16().empty()) return;
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NetOf("residual");
  const ExecGraph graph = executor::RunPasses(net.losses.graph(), AmpRequest(net, false), *runtime);
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const std::string& name = graph.nodes[graph.arguments[i]].name;
    if (!name.ends_with("_weight")) continue;
    CAPTURE(name);
    const ExecNode& writer = graph.nodes[graph.gradients[i].node];
    CHECK(writer.kind == Kind::kBackward);  // not a change of form behind it
    CHECK(writer.specs[1].type == DType::kFloat32);
    CHECK(writer.specs[1].layout == graph.nodes[graph.arguments[i]].specs[0].layout);
  }
  // Each form of a weight is made from the weight itself.
  for (const ExecNode& node : graph.nodes) {
    if (node.kind != Kind::kReorder || node.specs[0].type != DType::kBfloat16) continue;
    const ExecNode& source = graph.nodes[node.inputs[0].node];
    if (source.kind == Kind::kReorder) CHECK_FALSE(graph.nodes[source.inputs[0].node].is_variable());
  }
}

TEST_CASE("batch norms take up sums and activations in bfloat16 as in float32") {
  if (!WhyNoBfloat16().empty()) return;
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NetOf("residual");
  const auto fused = [&](const BindRequest& request, DType type) {
    int count = 0;
    for (const ExecNode& node : executor::RunPasses(net.losses.graph(), request, *runtime).nodes) {
      if (node.kind != Kind::kForward || node.op->TypeString() != "_BatchNormActivation") continue;
      ++count;
      CHECK(node.specs[0].type == type);
      CHECK(node.specs[1].type == DType::kFloat32);
      CHECK(node.plan->kernel == std::string("simd"));
    }
    return count;
  };
  const int wide = fused(RequestFor(net, net.losses), DType::kFloat32);
  CHECK(wide > 0);
  CHECK(fused(AmpRequest(net, false), DType::kBfloat16) == wide);
}

TEST_CASE("a step in mixed precision differs from float32 by rounding alone") {
  const auto runtime = NewRuntime("naive", 2);
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const auto plain = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    plain->Step(MakeInputs(*runtime, net, plain->input_names()));
    for (bool reference : Kernels()) {
      CAPTURE(reference);
      const auto mixed = BindWithValues(*runtime, net.losses, AmpRequest(net, reference));
      mixed->Step(MakeInputs(*runtime, net, mixed->input_names()));
      for (size_t i = 0; i < plain->outputs().size(); ++i) {
        CHECK(mixed->outputs()[i].dtype() == DType::kFloat32);
        const std::vector<double> expected = GetValues(plain->outputs()[i]), got = GetValues(mixed->outputs()[i]);
        // A few layers, each with a rounding of 2^-9, of values of order 1.
        for (size_t k = 0; k < got.size(); ++k) CHECK(std::abs(got[k] - expected[k]) < 0.06 * (1 + std::abs(expected[k])));
      }
      for (const auto& [name, gradient] : plain->grads()) {
        CAPTURE(name);
        CHECK(mixed->grad(name).dtype() == DType::kFloat32);
        const std::vector<double> expected = GetValues(gradient), got = GetValues(mixed->grad(name));
        double difference = 0, size = 0;
        for (size_t k = 0; k < got.size(); ++k) {
          difference += std::pow(got[k] - expected[k], 2);
          size += std::pow(expected[k], 2);
        }
        CHECK(std::sqrt(difference) <= 0.15 * std::sqrt(size) + 0.02);
      }
    }
  }
}

TEST_CASE("an executor in float32 reads the parameters of one in mixed precision") {
  const auto runtime = NewRuntime("naive", 2);
  const SmallNet net = NetOf("residual");
  for (bool reference : Kernels()) {
    const auto mixed = BindWithValues(*runtime, net.losses, AmpRequest(net, reference));
    BindRequest request = RequestFor(net, net.losses);
    request.grad_req.clear();
    request.is_train = false;
    for (const auto& [name, array] : mixed->args()) request.layouts[name] = array.layout();
    const auto evaluation = Executor::SimpleBind(*runtime, net.losses, request, mixed.get());
    const auto alone = BindWithValues(*runtime, net.losses, request);
    const std::vector<NDArray> inputs = MakeInputs(*runtime, net, alone->input_names());
    evaluation->Forward(inputs);
    const std::vector<double> got = GetValues(evaluation->outputs()[0]);
    alone->Forward(inputs);
    const std::vector<double> expected = GetValues(alone->outputs()[0]);
    for (size_t k = 0; k < got.size(); ++k) CHECK(got[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  }
}

TEST_CASE("types that a processor is not fast in are refused") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NetOf("mlp");
  BindRequest request = AmpRequest(net, false);
  request.amp = DType::kFloat16;
  CHECK_THROWS_WITH_AS(
      Executor::SimpleBind(*runtime, net.losses, request),
      "mixed precision in float16 is not supported on cpu(0): its processor has no fast arithmetic in it; train in float32", Error);
  if (!WhyNoBfloat16().empty()) {
    CHECK_THROWS_WITH_AS(Executor::SimpleBind(*runtime, net.losses, AmpRequest(net, false)), doctest::Contains("train in float32"), Error);
  }
}

}  // namespace
}  // namespace mxtrain::test
