// SPDX-License-Identifier: Apache-2.0
#include "tile_attention.h"

#include <doctest/doctest.h>

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

}  // namespace

void AddTileAttention(OperatorRegistry& registry) {
  registry.AddKernel(attention::TileKernel<OnTeams>());
}

}  // namespace mxtrain::test
