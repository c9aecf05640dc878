// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/registry.h"

#include <doctest/doctest.h>

#include "mxtrain/operator/simple_op.h"

namespace mxtrain {
namespace {

class Toy final : public OperatorProperty {
 public:
  std::string TypeString() const override { return "Toy"; }
  void Init(const Kwargs& kwargs) override { NoParam().Init(kwargs, TypeString()); }
  Kwargs GetParams() const override { return {}; }
  std::vector<FieldInfo> DescribeParams() const override { return {}; }
  std::vector<std::string> ListArguments() const override { return {"data", "label"}; }
  bool InferShape(std::vector<TShape>*, std::vector<TShape>*, std::vector<TShape>*) const override {
    return true;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>& in,
                                             const std::vector<int>& out) const override {
    return {in[1], out[0]};
  }
};

std::unique_ptr<OperatorProperty> MakeToy() {
  return std::make_unique<Toy>();
}

KernelEntry Kernel(const std::string& name, int rank, PlanFn plan) {
  return {"Toy", DeviceType::kCPU, name, rank, std::move(plan)};
}

PlanFn Refuse(const std::string& reason) {
  return [reason](const OperatorProperty&, const PlanRequest&, Backend&) {
    return Expected<Plan, Refusal>(Refusal{reason});
  };
}
PlanFn Accept(double cost) {
  return [cost](const OperatorProperty&, const PlanRequest&, Backend&) {
    Plan plan;
    plan.cost = cost;
    return Expected<Plan, Refusal>(std::move(plan));
  };
}

std::string ConfigErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

TEST_CASE("names, aliases and the nearest name") {
  OperatorRegistry registry;
  registry.AddProperty("Toy", {"toy", "plaything"}, MakeToy);
  CHECK(registry.Has("plaything"));
  CHECK(registry.CanonicalName("toy") == "Toy");
  CHECK(registry.Create("toy", {})->TypeString() == "Toy");
  CHECK(registry.Names() == std::vector<std::string>{"Toy"});
  CHECK(registry.Aliases("Toy") == std::vector<std::string>{"toy", "plaything"});
  CHECK(ConfigErrorOf([&] { registry.Create("plaithing", {}); }) ==
        "there is no operator 'plaithing'; did you mean 'plaything'?");
  CHECK(ConfigErrorOf([&] { registry.AddProperty("Other", {"toy"}, MakeToy); }) ==
        "operator Other: the name 'toy' is already taken by operator Toy");
  CHECK(ConfigErrorOf([&] {
          registry.Create("Toy", {{"size", "3"}});
        }) == "Toy has no parameter 'size'; it takes none");
}

TEST_CASE("the name of the host kernel is reserved") {
  OperatorRegistry registry;
  registry.AddProperty("Toy", {}, MakeToy);
  CHECK(ConfigErrorOf([&] { registry.AddKernel(Kernel("host", 0, Accept(1))); }) ==
        "operator Toy: the kernel name 'host' is reserved; choose another");
}

TEST_CASE("kernels are tried by rank and refusals are collected") {
  OperatorRegistry registry;
  registry.AddProperty("Toy", {}, MakeToy);
  const auto toy = registry.Create("Toy", {});
  const auto backend = NewCpuBackend(1);
  const TensorSpec specs[] = {{TShape{2, 3}, DType::kFloat32, {}}};
  PlanRequest request;
  request.in = specs;
  CHECK(ConfigErrorOf([&] { toy->CreatePlan(registry, request, *backend); }) ==
        "Toy has no kernel for cpu(0) in this build; run it on another device");

  registry.AddKernel(Kernel("ref", kRefRank, Refuse("float64 only")));
  registry.AddKernel(Kernel("fast", 10, Refuse("more than 4 axes only")));
  CHECK(ConfigErrorOf([&] { toy->CreatePlan(registry, request, *backend); }) ==
        "Toy: no kernel on cpu(0) takes inputs (float32 [2, 3]): fast: more than 4 axes only; ref: "
        "float64 only");

  registry.AddKernel(Kernel("middle", 20, Accept(7)));
  const Plan plan = toy->CreatePlan(registry, request, *backend);
  CHECK(std::string(plan.kernel) == "middle");
  CHECK(plan.cost == 7);
  CHECK(registry.Kernels("Toy", DeviceType::kCPU).size() == 3);
  CHECK(registry.Kernels("Toy", DeviceType::kGPU).empty());
  CHECK(ConfigErrorOf([&] { registry.AddKernel(Kernel("fast", 5, Accept(1))); }) ==
        "operator Toy: kernel 'fast' is already registered");
}

TEST_CASE("non-deterministic kernels are skipped when determinism is required") {
  OperatorRegistry registry;
  registry.AddProperty("Toy", {}, MakeToy);
  const auto toy = registry.Create("Toy", {});
  const auto backend = NewCpuBackend(1);
  const TensorSpec specs[] = {{TShape{2, 3}, DType::kFloat32, {}}};
  PlanRequest request;
  request.in = specs;
  registry.AddKernel(
      Kernel("racing", 10, [](const OperatorProperty&, const PlanRequest&, Backend&) {
        Plan plan;
        plan.deterministic = false;  // adds in the order of thread arrival
        return Expected<Plan, Refusal>(std::move(plan));
      }));
  CHECK(std::string(toy->CreatePlan(registry, request, *backend).kernel) == "racing");
  request.deterministic = true;
  CHECK(ConfigErrorOf([&] { toy->CreatePlan(registry, request, *backend); }) ==
        "Toy: no kernel on cpu(0) takes inputs (float32 [2, 3]): racing: not deterministic");
  registry.AddKernel(Kernel("ref", kRefRank, Accept(1)));
  CHECK(std::string(toy->CreatePlan(registry, request, *backend).kernel) == "ref");
}

TEST_CASE("derived facts of a property") {
  Toy toy;
  CHECK_FALSE(toy.NeedsHeadGradient());
  CHECK(toy.ForwardFlops({}, {TShape{2, 3}, TShape{4}}) == 10);

  std::vector<DType> in = {DType::kUnknown, DType::kFloat16}, out = {DType::kUnknown}, aux;
  CHECK(toy.InferType(&in, &out, &aux));
  CHECK(in[0] == DType::kFloat16);
  CHECK(out[0] == DType::kFloat16);
  out[0] = DType::kFloat64;
  CHECK(ConfigErrorOf([&] { toy.InferType(&in, &out, &aux); }) ==
        "Toy takes arrays of one type, but got float16 and float64; insert a Cast");
  in = {DType::kUnknown, DType::kUnknown}, out = {DType::kUnknown};
  CHECK_FALSE(toy.InferType(&in, &out, &aux));

  TShape shape{2, -1};
  UnifyShape(TShape{-1, 5}, &shape, "Toy", "data");
  CHECK(shape == TShape{2, 5});
  CHECK(ConfigErrorOf([&] {
          UnifyShape(TShape{2, 6}, &shape, "Toy", "data");
        }) == "Toy: data has shape [2, 6], but [2, 5] was expected");

  DType type = DType::kUnknown;
  UnifyType(DType::kUint8, &type, "Toy", "data");
  CHECK(type == DType::kUint8);
  CHECK(ConfigErrorOf([&] { UnifyType(DType::kFloat32, &type, "Toy", "data"); }) ==
        "Toy: data is uint8, but float32 was expected");
}

// Declares that the gradient of its data may share memory with array `from`.
class SharingToy final : public PropertyWithParam<NoParam> {
 public:
  explicit SharingToy(int from) : from_(from) {}
  std::string TypeString() const override { return "SharingToy"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{from_, 0}}; }

 private:
  int from_;
};

TEST_CASE("a gradient may share memory with what backward reads") {
  for (const int from : {3, -1}) {
    OperatorRegistry registry;
    registry.AddProperty("SharingToy", {}, [from] { return std::make_unique<SharingToy>(from); });
    CHECK_THROWS_WITH_AS(registry.Create("SharingToy", {}),
                         format("operator SharingToy: the backward in-place pair ({}, 0) is out of "
                                "range: there are 3 arrays that backward reads and 1 gradients",
                                from)
                             .c_str(),
                         Error);
  }
  for (const int from : {0, 1, 2}) {  // the head gradient, the data, the output
    OperatorRegistry registry;
    registry.AddProperty("SharingToy", {}, [from] { return std::make_unique<SharingToy>(from); });
    CHECK(registry.Create("SharingToy", {}));
  }
}

}  // namespace
}  // namespace mxtrain
