// SPDX-License-Identifier: Apache-2.0
// Mixed precision: which entries of a net are narrow, where parameters and gradients stay wide, and
// the effect on values.
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

SmallNet NamedNet(const std::string& name) {
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    if (net.name == name) return net;
  }
  FAIL("no net " << name);
  return {};
}

BindRequest AmpRequest(const SmallNet& net, bool reference, DType type = DType::kBfloat16) {
  BindRequest request = RequestFor(net, net.losses);
  request.amp = type;
  request.reference_kernels = reference;
  return request;
}

// The kernels of a machine without bfloat16 are the reference ones.
std::vector<bool> Kernels() {
  return WhyNoBfloat16().empty() ? std::vector{true, false} : std::vector{true};
}

const ExecNode& NodeOf(const ExecGraph& graph, const std::string& name,
                       Kind kind = Kind::kForward) {
  for (const ExecNode& node : graph.nodes) {
    if (node.kind == kind && node.name == name) return node;
  }
  FAIL("no node " << name);
  return graph.nodes[0];
}

TEST_CASE(
    "convolutions, and operators between them, are narrow; losses, statistics and parameters are "
    "wide") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("residual");
  for (const DType narrow : {DType::kBfloat16, DType::kFloat16}) {
    const ExecGraph graph =
        executor::RunPasses(net.losses.graph(), AmpRequest(net, true, narrow), *runtime);
    for (const char* name : {"stem", "stem_bn", "stem_relu", "left", "left_bn", "sum", "sum_relu",
                             "pool", "flat", "fc"}) {
      CAPTURE(name);
      CHECK(NodeOf(graph, name).specs[0].type == narrow);
    }
    CHECK(NodeOf(graph, "softmax").specs[0].type == DType::kFloat32);
    CHECK(graph.spec(NodeOf(graph, "softmax").inputs[0]).type == DType::kFloat32);
    CHECK(NodeOf(graph, format("data_{}", NameOf(narrow))).op->TypeString() == "Cast");
    const ExecNode& norm = NodeOf(graph, "stem_bn");
    for (size_t i = 1; i < norm.inputs.size(); ++i)
      CHECK(graph.spec(norm.inputs[i]).type == DType::kFloat32);
    CHECK(norm.specs[1].type == DType::kFloat32);

    const ExecNode& conv = NodeOf(graph, "stem");
    CHECK(graph.spec(conv.inputs[0]).type == narrow);
    CHECK(graph.spec(conv.inputs[1]).type == narrow);
    CHECK(graph.nodes[conv.inputs[1].node].kind == Kind::kReorder);
    CHECK(graph.spec(conv.inputs[2]).type == DType::kFloat32);  // the bias
    for (size_t i = 0; i < graph.arguments.size(); ++i) {
      const ExecNode& argument = graph.nodes[graph.arguments[i]];
      CAPTURE(argument.name);
      CHECK(argument.specs[0].type == DType::kFloat32);
      if (graph.gradients[i]) CHECK(graph.spec(graph.gradients[i]) == argument.specs[0]);
    }
  }
}

TEST_CASE("operators declare their part in mixed precision") {
  const auto use_of = [](const char* op, const Kwargs& kwargs = {}) {
    const MixedPrecision part = TestRegistry().Create(op, kwargs)->mixed_precision();
    return std::pair(part.use, part.arguments);
  };
  const Kwargs conv = {{"num_filter", "1"}, {"kernel", "(1, 1)"}};
  CHECK(use_of("Convolution", conv) == std::pair(MixedPrecision::kGains, 2));
  CHECK(use_of("FullyConnected", {{"num_hidden", "1"}}) == std::pair(MixedPrecision::kGains, 2));
  for (const char* op : {"dot", "batch_dot"})
    CHECK(use_of(op) == std::pair(MixedPrecision::kGains, 2));
  for (const char* op : {"BatchNorm", "LayerNorm", "RMSNorm"})
    CHECK(use_of(op) == std::pair(MixedPrecision::kFollows, 1));
  const auto follows = std::pair(MixedPrecision::kFollows, -1);
  CHECK(use_of("Activation", {{"act_type", "relu"}}) == follows);
  CHECK(use_of("Pooling", {{"kernel", "(2, 2)"}}) == follows);
  for (const char* op : {"ElementWiseSum", "Concat"})
    CHECK(use_of(op, {{"num_args", "2"}}) == follows);
  for (const char* op :
       {"elemwise_add", "Flatten", "Dropout", "gelu", "silu", "hard_swish", "transpose"})
    CHECK(use_of(op) == follows);
  CHECK(use_of("broadcast_mul") == std::pair(MixedPrecision::kFollowsAll, -1));
  CHECK(use_of("SliceChannel", {{"num_outputs", "3"}}) == follows);
  CHECK(use_of("Reshape", {{"shape", "(-1,)"}}) == follows);
  CHECK(use_of("clip", {{"a_min", "0"}, {"a_max", "6"}}) == follows);
  for (const char* op : {"SoftmaxOutput", "softmax_cross_entropy", "LinearRegressionOutput",
                         "slice_like", "_NormalizeRows"})
    CHECK(use_of(op).first == MixedPrecision::kNever);
}

TEST_CASE(
    "gradients of narrow weights come in float32 from the kernel, in the weight's own layout") {
  if (!WhyNoBfloat16().empty()) return;
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("residual");
  const ExecGraph graph = executor::RunPasses(net.losses.graph(), AmpRequest(net, false), *runtime);
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const std::string& name = graph.nodes[graph.arguments[i]].name;
    if (!name.ends_with("_weight")) continue;
    CAPTURE(name);
    const ExecNode& writer = graph.nodes[graph.gradients[i].node];
    CHECK(writer.kind == Kind::kBackward);  // not a conversion after it
    CHECK(writer.specs[1].type == DType::kFloat32);
    CHECK(writer.specs[1].layout == graph.nodes[graph.arguments[i]].specs[0].layout);
  }
  // Each conversion of a weight starts from the weight itself.
  for (const ExecNode& node : graph.nodes) {
    if (node.kind != Kind::kReorder || node.specs[0].type != DType::kBfloat16) continue;
    const ExecNode& source = graph.nodes[node.inputs[0].node];
    if (source.kind == Kind::kReorder)
      CHECK_FALSE(graph.nodes[source.inputs[0].node].is_variable());
  }
}

TEST_CASE("batch norms fuse with sums and activations in bfloat16 as in float32") {
  if (!WhyNoBfloat16().empty()) return;
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("residual");
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
        const std::vector<double> expected = GetValues(plain->outputs()[i]),
                                  got = GetValues(mixed->outputs()[i]);
        // A few layers, each with a rounding of 2^-9, of values of order 1.
        for (size_t k = 0; k < got.size(); ++k)
          CHECK(std::abs(got[k] - expected[k]) < 0.06 * (1 + std::abs(expected[k])));
      }
      for (const auto& [name, gradient] : plain->grads()) {
        CAPTURE(name);
        CHECK(mixed->grad(name).dtype() == DType::kFloat32);
        const std::vector<double> expected = GetValues(gradient),
                                  got = GetValues(mixed->grad(name));
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
  const SmallNet net = NamedNet("residual");
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
    for (size_t k = 0; k < got.size(); ++k)
      CHECK(got[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  }
}

TEST_CASE(
    "in evaluation batch norms are folded into weights, which are then cast like others, once for "
    "all batches") {
  if (!WhyNoBfloat16().empty()) return;
  const auto runtime = NewRuntime("naive", 2);
  const SmallNet net = NamedNet("residual");
  BindRequest request = AmpRequest(net, false);
  request.grad_req.clear();
  request.is_train = false;
  const auto narrow = BindWithValues(*runtime, net.losses, request);
  request.amp.reset();
  const auto wide = BindWithValues(*runtime, net.losses, request);
  int cast = 0;
  for (const ExecNode& node : narrow->graph().nodes) {
    CHECK((!node.op || node.op->TypeString() != "BatchNorm"));
    cast += node.precomputed && node.specs[0].type == DType::kBfloat16 &&
            node.specs[0].shape.ndim() == 4;
  }
  CHECK(cast >= 3);
  const std::vector<NDArray> inputs = MakeInputs(*runtime, net, wide->input_names());
  narrow->Forward(inputs);
  wide->Forward(inputs);
  const std::vector<double> got = GetValues(narrow->outputs()[0]),
                            expected = GetValues(wide->outputs()[0]);
  for (size_t k = 0; k < got.size(); ++k)
    CHECK(got[k] == doctest::Approx(expected[k]).epsilon(0.05));
}

std::vector<double> Difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

// Gradients of a step, divided by the scale they were computed with; 0: in float32, without one.
std::map<std::string, std::vector<double>> GradientsUnder(double scale, const SmallNet& net) {
  const auto runtime = NewRuntime("naive", 2);
  const auto executor = BindWithValues(
      *runtime, net.losses,
      scale > 0 ? AmpRequest(net, true, DType::kFloat16) : RequestFor(net, net.losses));
  CHECK(executor->loss_scale().empty() == (scale == 0));
  if (scale > 0) SetValues(executor->loss_scale(), {scale});
  executor->Step(MakeInputs(*runtime, net, executor->input_names()));
  std::map<std::string, std::vector<double>> gradients;
  for (const auto& [name, array] : executor->grads()) {
    CHECK(array.dtype() == DType::kFloat32);
    std::vector<double>& values = gradients[name] = GetValues(array);
    for (double& v : values) v /= scale > 0 ? scale : 1;
  }
  return gradients;
}

TEST_CASE("in float16 gradients are scaled at the losses, and nowhere else") {
  const auto runtime = NewRuntime("naive", 1);
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const ExecGraph graph =
        executor::RunPasses(net.losses.graph(), AmpRequest(net, true, DType::kFloat16), *runtime);
    REQUIRE(graph.loss_scale >= 0);
    size_t scales = 0;
    for (const ExecNode& node : graph.nodes) {
      if (node.kind != Kind::kForward || node.op->TypeString() != "_scale_gradient") continue;
      ++scales;
      CHECK(node.inputs[1] == NodeEntry{graph.loss_scale, 0});
      CHECK(node.specs[0].type == DType::kFloat32);
    }
    CHECK(scales == graph.heads.size());
    for (const NodeEntry& head : graph.heads)
      CHECK(graph.nodes[graph.nodes[head.node].inputs[0].node].op->TypeString() ==
            "_scale_gradient");
  }
  const SmallNet net = NamedNet("mlp");
  BindRequest evaluation = AmpRequest(net, true, DType::kFloat16);
  evaluation.grad_req.clear();
  CHECK(executor::RunPasses(net.losses.graph(), evaluation, *runtime).loss_scale < 0);
  // bfloat16 has the range of float32.
  CHECK(executor::RunPasses(net.losses.graph(), AmpRequest(net, true), *runtime).loss_scale < 0);
}

TEST_CASE("scaled gradients are those of float32 except for rounding, whatever the scale") {
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const auto plain = GradientsUnder(0, net), one = GradientsUnder(1, net),
               thousand = GradientsUnder(1024, net);
    for (const auto& [name, expected] : plain) {
      CAPTURE(name);
      // Where gradients cancel, rounding of 2^-11 of values of order 1 remains.
      CHECK(Norm(Difference(thousand.at(name), expected)) <= 0.02 * Norm(expected) + 0.003);
      CHECK(Norm(Difference(thousand.at(name), one.at(name))) <= 0.002 * Norm(expected) + 0.001);
    }
  }
}

// The smallest positive float16 is 6e-8.
TEST_CASE("gradients too small for float16 vanish without a scale, and survive with one") {
  SmallNet net = NamedNet("mlp");
  const std::vector in{net.features, Symbol::Variable(net.labels.begin()->first)};
  net.losses =
      Symbol::Create(TestRegistry(), "SoftmaxOutput", "softmax", {{"grad_scale", "1e-8"}}, in);
  const auto plain = GradientsUnder(0, net), lost = GradientsUnder(1, net),
             kept = GradientsUnder(1 << 24, net);
  for (const auto& [name, expected] : plain) {
    if (!name.ends_with("_weight")) continue;
    CAPTURE(name);
    CHECK(Norm(expected) > 0);
    CHECK(Norm(lost.at(name)) == 0);
    CHECK(Norm(Difference(kept.at(name), expected)) < 0.02 * Norm(expected));
  }
}

TEST_CASE("in float16 a net is trained by its losses alone") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("mlp");
  BindRequest request = RequestFor(net, net.features);
  request.amp = DType::kFloat16;
  request.reference_kernels = true;
  CHECK_THROWS_WITH_AS(
      Executor::SimpleBind(*runtime, net.features, request),
      doctest::Contains(
          "is an output of the net but not a loss: in float16 gradients are scaled at the losses"),
      Error);
  request.grad_req.clear();
  CHECK_NOTHROW(Executor::SimpleBind(*runtime, net.features, request));
}

TEST_CASE("an executor for other shapes has the scale of the first") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("mlp");
  const auto executor =
      BindWithValues(*runtime, net.losses, AmpRequest(net, true, DType::kFloat16));
  std::map<std::string, TShape> shapes;
  for (const auto* inputs : {&net.data, &net.labels}) {
    for (const auto& [name, shape] : *inputs) (shapes[name] = shape)[0] = 2 * shape[0];
  }
  const auto other = executor->Reshape(shapes);
  CHECK(GetValues(other->loss_scale()) == std::vector<double>{1});
  SetValues(executor->loss_scale(), {8});
  CHECK(GetValues(other->loss_scale()) == std::vector<double>{8});
}

TEST_CASE("types that a processor is not fast in are rejected") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = NamedNet("mlp");
  BindRequest request = AmpRequest(net, false);
  request.amp = DType::kFloat16;
  CHECK_THROWS_WITH_AS(Executor::SimpleBind(*runtime, net.losses, request),
                       "mixed precision in float16 is not supported on cpu(0): its processor has "
                       "no fast arithmetic in it; train in float32",
                       Error);
  if (!WhyNoBfloat16().empty()) {
    CHECK_THROWS_WITH_AS(Executor::SimpleBind(*runtime, net.losses, AmpRequest(net, false)),
                         doctest::Contains("train in float32"), Error);
  }
}

}  // namespace
}  // namespace mxtrain::test
