// SPDX-License-Identifier: Apache-2.0
// Squeeze-and-excitation (Hu et al. 2018, arXiv 1709.01507): the images that are scaled, and the
// scales, keep the layout of the convolutions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::ExecNode;

constexpr int64_t kLayoutBatch = 5;

Symbol Convolution(const std::string& name, const Symbol& x, int width, int kernel) {
  return Layer("Convolution", name, {x},
               {{"num_filter", std::to_string(width)},
                {"kernel", format("({0}, {0})", kernel)},
                {"pad", format("({0}, {0})", kernel / 2)}});
}
Symbol Pool(const std::string& name, const Symbol& x) {
  return Layer("Pooling", name, {x}, {{"global_pool", "True"}, {"pool_type", "avg"}});
}

// Two convolutions of `width` channels, the first one with a gate of 1x1 convolutions or of
// FullyConnected layers.
SmallNet Gated(int width, bool convolutions) {
  const Symbol image = Convolution("image", Symbol::Variable("data"), width, 3);
  const auto dense = [&](const char* name, const Symbol& x, int outputs) {
    return convolutions
               ? Convolution(name, x, outputs, 1)
               : Layer("FullyConnected", name, {x}, {{"num_hidden", std::to_string(outputs)}});
  };
  Symbol gate = dense("squeeze", Pool("pool", image), 16);
  gate = dense("excite", Layer("Activation", "relu", {gate}, {{"act_type", "relu"}}), width);
  gate = Layer("Activation", "gate", {gate}, {{"act_type", "sigmoid"}});
  if (!convolutions) gate = Layer("Reshape", "column", {gate}, {{"shape", "(0, 0, 1, 1)"}});
  const Symbol scaled = Layer("broadcast_mul", "scaled", {image, gate}, {});
  const Symbol x =
      Layer("FullyConnected", "classes", {Pool("last", Convolution("next", scaled, width, 3))},
            {{"num_hidden", "4"}});
  return {"gated",
          Layer("SoftmaxOutput", "softmax", {x}, {}),
          x,
          {{"data", {kLayoutBatch, 3, 8, 8}}},
          {{"softmax_label", {kLayoutBatch}}},
          4};
}

// Conversions of what depends on the batch, but for the data themselves.
std::vector<std::string> ReorderList(const ExecGraph& graph) {
  std::vector<std::string> found;
  for (const ExecNode& node : graph.nodes) {
    if (node.kind == Node::Kind::kReorder && node.specs[0].shape[0] == kLayoutBatch &&
        !graph.nodes[node.inputs[0].node].is_variable())
      found.push_back(format("{} {}", node.name, node.specs[0].shape.ToString()));
  }
  return found;
}

std::string Reorders(const ExecGraph& graph) {
  return format("{}", join(ReorderList(graph), "; "));
}

TEST_CASE("a squeeze-and-excitation block reorders nothing, and gives the reference's numbers") {
  const auto runtime = NewRuntime("naive", 1);
  for (const bool convolutions : {true, false}) {
    CAPTURE(convolutions);
    const SmallNet net = Gated(64, convolutions);
    BindRequest request = RequestFor(net, net.losses);
    CHECK(Reorders(RunPasses(net.losses.graph(), request, *runtime)) == "");
    BindRequest inference = RequestFor(net, net.features);
    inference.is_train = false;
    inference.grad_req.clear();
    CHECK(Reorders(RunPasses(net.features.graph(), inference, *runtime)) == "");

    const auto step = [&] {
      const auto executor = BindWithValues(*runtime, net.losses, request);
      executor->Step(MakeInputs(*runtime, net, executor->input_names()));
      return ResultOf(*executor);
    };
    const Result got = step();
    request.reference_kernels = true;
    const Result expected = step();
    REQUIRE(got.size() == expected.size());
    for (const auto& [name, values] : expected) {
      CAPTURE(name);
      const std::vector<double>& found = got.at(name);
      REQUIRE(found.size() == values.size());
      double distance = 0, size = 1;
      for (size_t i = 0; i < values.size(); ++i) {
        distance = std::max(distance, std::abs(found[i] - values[i]));
        size = std::max(size, std::abs(values[i]));
      }
      CHECK(distance <= 1e-4 * size);
    }
  }
}

// Only the scales are converted, since the padding of a sigmoid's output would not be zero.
TEST_CASE("with padded blocks no image is reordered") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = Gated(20, true);
  for (const std::string& reorder :
       ReorderList(RunPasses(net.losses.graph(), RequestFor(net, net.losses), *runtime)))
    CHECK(reorder.ends_with("[5, 20, 1, 1]"));
}

}  // namespace
}  // namespace mxtrain::test
