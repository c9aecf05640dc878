// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/registry.h"
#include "tests/support/build_paths.h"

namespace mxtrain {
namespace {

std::string PluginFile(const std::string& name) {
  return (test::BinaryDir() / "lib" / (name + ".so")).string();
}

std::string LoadError(const std::string& path) {
  OperatorRegistry registry;
  try {
    registry.LoadPlugin(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

TEST_CASE("a plug-in adds its operators") {
  OperatorRegistry registry;
  registry.LoadPlugin(PluginFile("twice"));
  REQUIRE(registry.Has("twice"));
  const auto twice = registry.Create("twice", {});
  std::vector<TShape> in = {TShape{3}}, out(1), aux;
  CHECK(twice->InferShape(&in, &out, &aux));

  const TensorSpec specs[] = {{TShape{3}, DType::kFloat32, {}}};
  const OpReqType req[] = {OpReqType::kWriteTo};
  PlanRequest request;
  request.in = request.out = specs;
  request.out_req = req;
  const auto backend = NewCpuBackend(1);
  const auto op = twice->CreatePlan(registry, request, *backend).make();
  float x[] = {1, -2, 3}, y[] = {0, 0, 0};
  const TBlob from[] = {{x, TShape{3}, DType::kFloat32, {}, {}}},
              to[] = {{y, TShape{3}, DType::kFloat32, {}, {}}};
  op->Forward({{}, from, req, to, {}});
  CHECK(y[0] == 2);
  CHECK(y[1] == -4);
  CHECK(y[2] == 6);
}

TEST_CASE("files that are not plug-ins for this program are rejected by name") {
  const std::string foreign = PluginFile("foreign_abi"), none = PluginFile("no_plugin");
  CHECK(LoadError(foreign) == "the plug-in " + foreign +
                                  " (stranger, built with mxtrain 9.9.9) has ABI number " +
                                  std::to_string(kPluginAbi + 41) + ", but this program has " +
                                  std::to_string(kPluginAbi) + "; rebuild it");
  CHECK(LoadError(none) == none +
                               " is not an mxtrain plug-in: symbol mxtrain_plugin_info is missing; "
                               "build it with mxtrain_add_plugin");
  CHECK(LoadError("/no/such/file.so")
            .starts_with("cannot load the plug-in /no/such/file.so: cannot open shared object"));
}

TEST_CASE("a plug-in cannot replace an operator, and a failed one leaves nothing behind") {
  OperatorRegistry registry;
  registry.LoadPlugin(PluginFile("twice"));
  const std::vector<std::string> names = registry.Names();
  // Another file with the same operator, after one of its own.
  CHECK_THROWS_WITH(
      registry.LoadPlugin(PluginFile("thrice")),
      doctest::Contains("(thrice): SimpleOp twice: the function for cpu(0) is already set"));
  CHECK(registry.Names() == names);
  CHECK(registry.Kernels("thrice", DeviceType::kCPU).empty());
  CHECK_FALSE(registry.Has("thrice"));
  // Its addition to an existing operator is also undone.
  CHECK_FALSE(registry.Has("tris"));
  const auto twice = registry.CreateUninitialized("twice");
  CHECK(twice->Description() == "");
  CHECK(twice->DescribeParams().empty());
  CHECK(twice->ForwardResource({TShape{3}}).empty());
}

TEST_CASE("a plug-in that is already loaded is ignored, under any path") {
  OperatorRegistry registry;
  registry.LoadPlugin(PluginFile("twice"));
  registry.LoadPlugin(PluginFile("twice"));
  registry.LoadPlugin(PluginFile("../lib/twice"));
  CHECK(registry.Kernels("twice", DeviceType::kCPU).size() == 1);
  OperatorRegistry other;
  other.LoadPlugin(PluginFile("twice"));
  CHECK(other.Has("twice"));
}

TEST_CASE("objects of a plug-in outlive the registry, the runtime and the engine's last function") {
  std::shared_ptr<const OperatorProperty> property;
  std::unique_ptr<Operator> op;
  {
    auto registry = std::make_shared<OperatorRegistry>();
    registry->LoadPlugin(PluginFile("twice"));
    property = registry->Create("twice", {});
    const TensorSpec specs[] = {{TShape{3}, DType::kFloat32, {}}};
    const OpReqType req[] = {OpReqType::kWriteTo};
    PlanRequest request;
    request.in = request.out = specs;
    request.out_req = req;
    op = property->CreatePlan(*registry, request, *NewCpuBackend(1)).make();

    // The last step's functions may still be pending when everything is destroyed.
    Runtime runtime(RuntimeOptions(), registry);
    registry.reset();
    const NDArray x = NDArray::FromVector(runtime, TShape{3}, {1, 2, 3});
    for (int i = 0; i < 100; ++i) Invoke("twice", {&x, 1});
  }
  float x[] = {1, -2, 3}, y[] = {0, 0, 0};
  const OpReqType req[] = {OpReqType::kWriteTo};
  const TBlob from[] = {{x, TShape{3}, DType::kFloat32, {}, {}}},
              to[] = {{y, TShape{3}, DType::kFloat32, {}, {}}};
  op->Forward({{}, from, req, to, {}});
  CHECK(y[2] == 6);
  CHECK(property->TypeString() == "twice");
}

}  // namespace
}  // namespace mxtrain
