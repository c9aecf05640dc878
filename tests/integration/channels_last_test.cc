// SPDX-License-Identifier: Apache-2.0
// Nets whose convolutions need channels-last arrays: operators between them use that layout, and
// the values equal those of plain arrays.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/device/blocked_layout.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_image_nets.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;

std::vector<SmallNet> Nets() {
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  for (unsigned seed = 0; seed < NumRandomNets(60); ++seed)
    nets.push_back(RandomImageNet(TestRegistry(), seed));
  return nets;
}

BindRequest RequestOn(const SmallNet& net, Context ctx) {
  BindRequest request = RequestFor(net, net.losses);
  request.ctx = ctx;
  request.reference_kernels = ctx.type == DeviceType::kCPU;
  return request;
}

std::map<std::string, std::vector<double>> ResultOn(Runtime& runtime, const SmallNet& net,
                                                    Context ctx) {
  const auto executor = BindWithValues(runtime, net.losses, RequestOn(net, ctx));
  executor->Step(MakeInputs(runtime, net, executor->input_names()));
  std::map<std::string, std::vector<double>> result;
  for (size_t i = 0; i < executor->outputs().size(); ++i)
    result[format("output {}", i)] = GetValues(executor->outputs()[i]);
  for (const auto& [name, array] : executor->grads())
    result["gradient of " + name] = GetValues(array);
  for (const auto& [name, array] : executor->auxs()) result[name] = GetValues(array);
  return result;
}

TEST_CASE("a step with convolutions in channels last gives the plain one's numbers") {
  const auto runtime = NewChannelsLastRuntime();
  for (const SmallNet& net : Nets()) {
    CAPTURE(net.name);
    const auto got = ResultOn(*runtime, net, Context::gpu(0)),
               expected = ResultOn(*runtime, net, Context::cpu());
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

// Otherwise there would be copies before and after each convolution.
TEST_CASE(
    "between convolutions nothing is transposed, only once before the layers that take rows") {
  const auto runtime = NewChannelsLastRuntime();
  for (const SmallNet& net : Nets()) {
    if (net.name != "residual" && net.name != "inception") continue;
    const executor::ExecGraph graph =
        executor::RunPasses(net.losses.graph(), RequestOn(net, Context::gpu(0)), *runtime);
    int turned = 0, images = 0;
    for (const executor::ExecNode& node : graph.nodes) {
      const bool image =
          !node.backward_pass && !node.is_variable() && node.specs[0].shape.ndim() == 4;
      if (!image || (!node.inputs.empty() && graph.nodes[node.inputs[0].node].is_variable()))
        continue;
      ++images;
      CAPTURE(node.name);
      if (node.kind == Node::Kind::kReorder) {
        ++turned;
      } else {
        CHECK(ChannelsLast(node.specs[0].layout));
      }
    }
    CHECK(images > 5);
    CHECK(turned == 1);
  }
}

}  // namespace
}  // namespace mxtrain::test
