// SPDX-License-Identifier: Apache-2.0
// Random nets whose convolutions do a part of the work of batch norms, against the same nets
// without.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/param_of.h"
#include "mxtrain/operator/registry.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_image_nets.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;

// With a kernel for _ConvolutionWithBatchNorm that ranks before the reference, for outputs with an
// even number of channels; it takes as many arguments as a library's.
std::shared_ptr<OperatorRegistry> WithSums() {
  std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  const PlanFn reference =
      registry->Kernels("_ConvolutionWithBatchNorm", DeviceType::kCPU).back()->plan;
  registry->AddKernel({"_ConvolutionWithBatchNorm", DeviceType::kCPU, "summing", kRefRank - 1,
                       [reference](const OperatorProperty& property, const PlanRequest& request,
                                   Backend& backend) -> Expected<Plan, Refusal> {
                         if (request.out[0].shape[1] % 2 != 0) return Refusal{"odd"};
                         return reference(property, request, backend);
                       }});
  return registry;
}

std::unique_ptr<Runtime> RuntimeOf(std::shared_ptr<const OperatorRegistry> registry) {
  RuntimeOptions options;
  options.threads = 2;
  options.seed = 3;
  return std::make_unique<Runtime>(options, std::move(registry));
}

struct Counts {
  int sums = 0, gates = 0;                     // convolutions that do so
  int with_sums = 0, gated = 0, own_sums = 0;  // batch norms; the last ones behind a convolution
};
void Count(const Executor& executor, Counts* counts) {
  const auto& nodes = executor.graph().nodes;
  const auto has = [](const auto& node, const char* param) {
    return ParamOf(*node.op, param) == "True";
  };
  for (const auto& node : nodes) {
    if (node.kind != Node::Kind::kForward || node.forward >= 0) continue;
    const std::string type = node.op->TypeString();
    counts->sums += has(node, "sums_output");
    counts->gates += has(node, "gates_gradient");
    if (type != "BatchNorm" && type != "_BatchNormActivation") continue;
    counts->with_sums += has(node, "with_batch_sums");
    counts->gated += has(node, "gated_gradient");
    counts->own_sums += !has(node, "with_batch_sums") &&
                        nodes[node.inputs[0].node].kind == Node::Kind::kForward &&
                        nodes[node.inputs[0].node].op->TypeString() == "Convolution";
  }
}

double Root(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST_CASE("batch norms with given sums learn what those with their own learn") {
  const auto plain = RuntimeOf(BuiltinOperators()), sharing = RuntimeOf(WithSums());
  Counts with, without;
  for (unsigned seed = 0; seed < NumRandomNets(40); ++seed) {
    const SmallNet net = RandomImageNet(TestRegistry(), seed);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    Result results[2];
    for (const bool shares : {false, true}) {
      Runtime& runtime = shares ? *sharing : *plain;
      const auto executor = BindWithValues(runtime, net.losses, request);
      for (int step = 0; step < 2; ++step)
        executor->Step(MakeInputs(runtime, net, executor->input_names()));
      results[shares] = ResultOf(*executor);
      Count(*executor, shares ? &with : &without);
    }
    REQUIRE(results[1].size() == results[0].size());
    double largest = 0;
    for (const auto& [name, values] : results[0]) largest = std::max(largest, Root(values));
    for (const auto& [name, values] : results[0]) {
      CAPTURE(name);
      double distance = 0;
      for (size_t i = 0; i < values.size(); ++i)
        distance = std::max(distance, std::abs(results[1].at(name)[i] - values[i]));
      CHECK(distance <= 3e-4 * std::max(Root(values), largest / 20));
    }
  }
  for (const int none : {without.sums, without.gates, without.with_sums, without.gated})
    CHECK(none == 0);
  CHECK(with.gates == with.gated);
  CHECK(with.sums <= with.with_sums);
  if (NumRandomNets(40) < 40) return;
  CHECK(with.with_sums >= 20);
  CHECK(with.gates >= 3);
  CHECK(with.own_sums >= 1);  // of an odd number of channels
}

TEST_CASE("nothing is shared in evaluation, for a part of a divided batch, or without fusion") {
  const auto runtime = RuntimeOf(WithSums());
  const auto sharing = [&](const std::function<void(BindRequest*)>& change) {
    Counts counts;
    for (unsigned seed = 0; seed < 6; ++seed) {
      const SmallNet net = RandomImageNet(TestRegistry(), seed);
      BindRequest request = RequestFor(net, net.losses);
      change(&request);
      Count(*BindWithValues(*runtime, net.losses, request), &counts);
    }
    return counts.sums + counts.gates;
  };
  CHECK(sharing([](BindRequest*) {}) > 0);
  CHECK(sharing([](BindRequest* r) {
          r->is_train = false;
          r->grad_req.clear();
        }) == 0);
  CHECK(sharing([](BindRequest* r) { r->divided_batch = true; }) == 0);
  CHECK(sharing([](BindRequest* r) { r->memory_budget.bytes = int64_t{1} << 30; }) == 0);
  CHECK(sharing([](BindRequest* r) { r->fuse = false; }) == 0);
}

}  // namespace
}  // namespace mxtrain::test
