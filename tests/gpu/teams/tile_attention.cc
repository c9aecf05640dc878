// SPDX-License-Identifier: Apache-2.0
#include "tile_attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "host_as_gpu.h"
#include "mxtrain/base/format.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_by_tiles.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"
#include "tests/support/tile_device.h"

namespace mxtrain::test {
namespace {

// The operators of a GPU's net of attention in mixed precision.
std::string OperatorsOf(const Kwargs& kwargs, std::vector<std::string> arguments) {
  RuntimeOptions options;
  options.threads = 1;
  options.new_gpu_backend = [] { return std::make_unique<HostAsGpu>(); };
  const std::shared_ptr<const OperatorRegistry> registry(&TestRegistry(), [](const auto*) {});
  Runtime runtime(options, registry);
  executor::BindRequest request;
  request.ctx = Context::gpu(0);
  request.amp = DType::kBfloat16;
  std::vector<Symbol> variables;
  for (const std::string& name : arguments) {
    variables.push_back(Symbol::Variable(name));
    request.shapes[name] = name == "mask" ? TShape{5, 7} : TShape{2, 3, name == "q" ? 5 : 7, 16};
    request.types[name] = DType::kFloat32;
    request.grad_req[name] = executor::GradReq::kWrite;
  }
  const Symbol net = Symbol::Create(*registry, "scaled_dot_product_attention", "net", kwargs,
                                    variables, {}, {}, "");
  std::vector<std::string> names;
  for (const executor::ExecNode& node : executor::RunPasses(net.graph(), request, runtime).nodes) {
    if (!node.is_variable() && !node.backward_pass && node.op)
      names.push_back(node.op->TypeString());
  }
  return format("{}", join(names, " "));
}

// A composite is not taken apart before its arguments are narrow: no kernel takes them in float32.
TEST_CASE("attention in mixed precision is one kernel, with a mask its graph") {
  CHECK(OperatorsOf({}, {"q", "k", "v"}) == "scaled_dot_product_attention Cast");
  const std::string parts = OperatorsOf({{"mask", "additive"}}, {"q", "k", "v", "mask"});
  CHECK(parts.find("batch_dot") != std::string::npos);
  CHECK(parts.find("scaled_dot_product_attention") == std::string::npos);
}

// With equal draws every gradient is that of the CPU's loops.
TEST_CASE("dropout of attention by tiles draws as the CPU does") {
  HostAsGpu gpu;
  for (const char* causal : {"False", "True"}) {
    CAPTURE(causal);
    std::map<std::string, CaseResult> results;
    OperatorCase c;
    c.name = "attention with equal draws";
    c.op = "scaled_dot_product_attention";
    c.kwargs = {{"dropout_p", "0.4"}, {"is_causal", causal}};
    c.shapes = {{2, 70, 16}, {2, 150, 16}, {2, 150, 8}};
    c.inputs = {Uniform(-1, 1)};
    c.types = {DType::kFloat16};
    c.check = [&results](const CaseResult& r) {
      results[r.kernel] = r;
      return std::vector<std::string>();
    };
    CHECK(ExamineCase(c, TestRegistry(), TestBackend(), Context::cpu()).problems.empty());
    CHECK(ExamineCase(c, TestRegistry(), gpu, Context::gpu(0)).problems.empty());
    REQUIRE(results.contains("ref"));
    REQUIRE(results.contains("tiles"));
    const auto compare = [](const Values& tiles, const Values& reference) {
      REQUIRE(tiles.size() == reference.size());
      for (size_t i = 0; i < tiles.size(); ++i)
        CHECK(std::abs(tiles[i] - reference[i]) <= 2e-3 + 4e-3 * std::abs(reference[i]));
    };
    compare(results["tiles"].out[0], results["ref"].out[0]);
    for (size_t i = 0; i < 3; ++i) compare(results["tiles"].in_grad[i], results["ref"].in_grad[i]);
  }
}

}  // namespace

void AddTileAttention(OperatorRegistry& registry) {
  registry.AddKernel(attention::TileKernel<OnTeams>());
}

}  // namespace mxtrain::test
