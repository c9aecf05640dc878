// SPDX-License-Identifier: Apache-2.0
// Tests of the test: an operator with one fault at a time must be caught, and without a fault must
// pass.
#include "tests/support/operator_case.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/fake_gpu.h"

namespace mxtrain::test {
namespace {

enum class Fault {
  kNone,
  kForwardSign,
  kGradientFactor,
  kForgetsToAdd,
  kForgetsToAddGradient,
  kLeavesAnElement,
  kWritesBeyond,
  kChangesItsInput,
  kAllocates,
  kCountsRuns,
  kPadding,
  kUndeclaredPair,
  kTakesIntegers,
};

class TwiceProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "Twice"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& head, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return head;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
};

class FaultyTwice final : public Operator {
 public:
  explicit FaultyTwice(Fault fault) : fault_(fault) {}

  void Forward(const ForwardArgs& args) override {
    if (fault_ == Fault::kAllocates) delete new volatile int(1);
    if (fault_ == Fault::kChangesItsInput) WriteFirst(args.in_data[0]);
    const double factor = fault_ == Fault::kForwardSign  ? -2
                          : fault_ == Fault::kCountsRuns ? 2 + runs_++ * 1e-3
                                                         : 2;
    Scale(args.ctx,
          fault_ == Fault::kForgetsToAdd && args.req[0] == OpReqType::kAddTo ? OpReqType::kWriteTo
                                                                             : args.req[0],
          factor, args.in_data[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    const bool forgets = fault_ == Fault::kForgetsToAddGradient && args.req[0] == OpReqType::kAddTo;
    Scale(args.ctx, forgets ? OpReqType::kWriteTo : args.req[0],
          fault_ == Fault::kGradientFactor ? 2.01 : 2, args.out_grad[0], args.in_grad[0]);
  }

 private:
  static void WriteFirst(const TBlob& blob) {
    SwitchFloating(blob.type, "Twice",
                   [&](auto tag) { *blob.dptr<typename decltype(tag)::type>() = 77; });
  }
  void Scale(const OpContext& ctx, OpReqType req, double factor, const TBlob& from,
             const TBlob& to) const {
    if (req == OpReqType::kNullOp) return;  // there is no memory: writing to it ends the test
    SwitchFloating(to.type, "Twice", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t last = to.StoredSize() - 1;
      const T kept = to.dptr<T>()[last];
      const T* x = from.dptr<T>();
      const double shift = fault_ == Fault::kPadding && !to.layout.plain() ? 1e-9 : 0;
      Map<T>(ctx.run_ctx, to, req,
             [=](int64_t i) { return factor * static_cast<double>(x[i]) + shift; });
      if (fault_ == Fault::kLeavesAnElement) to.dptr<T>()[last] = kept;
      if (fault_ == Fault::kWritesBeyond) to.dptr<T>()[last + 1] = 1;
    });
  }

  Fault fault_;
  int runs_ = 0;
};

CaseReport ExamineFault(Fault fault) {
  OperatorRegistry registry;
  registry.AddProperty("Twice", {}, [] { return std::make_unique<TwiceProperty>(); });
  const auto plan = [fault](const OperatorProperty& property, const PlanRequest& request,
                            Backend&) -> Expected<Plan, Refusal> {
    Plan made = FlatPlan(property, request, true);
    if (fault == Fault::kUndeclaredPair) made.backward_inplace = {{0, 0}};
    made.make = [fault] { return std::make_unique<FaultyTwice>(fault); };
    return made;
  };
  registry.AddKernel(LastKernel<OnCpu>(
      "Twice", plan, fault == Fault::kTakesIntegers ? Takes::kEveryType : Takes::kFloats));
  OperatorCase c;
  c.name = "twice";
  c.op = "Twice";
  c.shapes = {{2, 5, 3, 3}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [](double x) { return 2 * x; })};
  };
  return ExamineCase(c, registry, TestBackend());
}

bool Finds(Fault fault, const std::string& text) {
  const CaseReport report = ExamineFault(fault);
  return std::any_of(
      report.problems.begin(), report.problems.end(),
      [&](const std::string& problem) { return problem.find(text) != std::string::npos; });
}

TEST_CASE("an operator case accepts a correct operator") {
  const CaseReport report = ExamineFault(Fault::kNone);
  CHECK(report.problems == std::vector<std::string>{});
  CHECK(report.kernels.size() == 2);
  CHECK(report.trials > 10);
}

TEST_CASE("an operator case finds every fault") {
  CHECK(Finds(Fault::kForwardSign, "output 0: "));
  CHECK(Finds(Fault::kGradientFactor, "gradient 0: "));
  CHECK(Finds(Fault::kForgetsToAdd, "accumulate outputs: output 0: "));
  CHECK(Finds(Fault::kForgetsToAddGradient, "accumulate gradients: gradient 0: "));
  CHECK(Finds(Fault::kLeavesAnElement, "1 of 90 elements wrong"));
  CHECK(Finds(Fault::kWritesBeyond, "wrote outside output 0"));
  CHECK(Finds(Fault::kChangesItsInput, "input 0 in forward was changed"));
  CHECK(Finds(Fault::kAllocates, "heap allocations"));
  CHECK(Finds(Fault::kCountsRuns, "a second run gives different numbers"));
  CHECK(Finds(Fault::kPadding, "has padding that is not zero"));
  CHECK(Finds(Fault::kUndeclaredPair, "undeclared in-place pair of backward"));
  CHECK(Finds(Fault::kTakesIntegers, "int32: the plan accepts what the kernel rejects"));
}

// x plus a number of [0, 1) of its element; or, with a fault, of its place in memory, or 1 more in
// float64.
enum class NoiseFault { kNone, kByPlace, kInFloat64 };

class NoisyProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "Noisy"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }
};

class Noisy final : public Operator {
 public:
  explicit Noisy(NoiseFault fault) : fault_(fault) {}
  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.out_data[0].type, "Noisy", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const RandomDraws draws = args.ctx.requested[0].Draws();
      const T* x = args.in_data[0].dptr<T>();
      const double more = fault_ == NoiseFault::kInFloat64 && std::is_same_v<T, double> ? 1 : 0;
      Map<T>(args.ctx.run_ctx, args.out_data[0], args.req[0], [=](int64_t i) {
        return static_cast<double>(x[i]) + draws.Uniform(static_cast<uint64_t>(i)) + more;
      });
    });
  }

 private:
  NoiseFault fault_;
};

std::vector<std::string> ProblemsOfNoise(NoiseFault fault) {
  OperatorRegistry registry;
  registry.AddProperty("Noisy", {}, [] { return std::make_unique<NoisyProperty>(); });
  registry.AddKernel(LastKernel<OnCpu>(
      "Noisy", [fault](const OperatorProperty& property, const PlanRequest& request, Backend&) {
        Plan plan = fault == NoiseFault::kByPlace ? FlatPlan(property, request, false)
                                                  : PlainPlan(property, request);
        plan.make = [fault] { return std::make_unique<Noisy>(fault); };
        return Expected<Plan, Refusal>(std::move(plan));
      }));
  OperatorCase c;
  c.name = "noise";
  c.op = "Noisy";
  c.shapes = {{3, 5}};
  c.inputs = {Uniform(-1, 1)};
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    for (size_t i = 0; i < r.out[0].size(); ++i) {
      const double noise = r.out[0][i] - r.in[0][i];
      if (noise < -1e-6 || noise > 1 + 1e-6) problems.push_back(format("noise of {}", noise));
    }
    return problems;
  };
  c.types = {DType::kFloat32};
  c.backward = false;
  return ExamineCase(c, registry, TestBackend()).problems;
}

TEST_CASE("a random operator is examined in a second type and in every layout") {
  CHECK(ProblemsOfNoise(NoiseFault::kNone) == std::vector<std::string>{});
  const std::vector<std::string> by_place = ProblemsOfNoise(NoiseFault::kByPlace),
                                 in_float64 = ProblemsOfNoise(NoiseFault::kInFloat64);
  REQUIRE(!by_place.empty());
  CHECK(by_place[0].find("on images") != std::string::npos);
  REQUIRE(!in_float64.empty());
  CHECK(in_float64[0].find("float64") != std::string::npos);
}

TEST_CASE("an operator case reports refusals and is timed") {
  OperatorRegistry registry;
  registry.AddProperty("Twice", {}, [] { return std::make_unique<TwiceProperty>(); });
  registry.AddKernel({"Twice", DeviceType::kCPU, "never", 1,
                      [](const OperatorProperty&, const PlanRequest&, Backend&) {
                        return Expected<Plan, Refusal>(Refusal{"not today"});
                      }});
  registry.AddKernel(LastKernel<OnCpu>(
      "Twice", [](const OperatorProperty& property, const PlanRequest& request, Backend&) {
        Plan plan = PlainPlan(property, request);
        plan.make = [] { return std::make_unique<FaultyTwice>(Fault::kNone); };
        return Expected<Plan, Refusal>(std::move(plan));
      }));
  OperatorCase c;
  c.name = "twice";
  c.op = "Twice";
  c.shapes = {{3, 5}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [](double x) { return 2 * x; })};
  };
  const CaseReport report = ExamineCase(c, registry, TestBackend());
  CHECK(report.problems.empty());
  CHECK(report.kernels.at(0).refusal == "not today");
  CHECK(report.kernels.at(1).refusal == "");
  c.must_accept = {"never", "missing"};
  CHECK(ExamineCase(c, registry, TestBackend()).problems.size() == 2);
  const std::vector<CaseTiming> timings = TimeCase(c, DType::kFloat32, 2, registry, TestBackend());
  CHECK(timings.size() == 1);
  CHECK(timings.at(0).forward_ns > 0);
  CHECK(timings.at(0).backward_ns > 0);
}

TEST_CASE("an operator case runs on a device whose memory the host cannot access") {
  const auto runtime = NewFakeGpuRuntime("naive");
  const Context gpu = Context::gpu(0);
  OperatorCase c;
  c.name = "product";
  c.op = "elemwise_mul";
  c.shapes = {{2, 5, 3, 3}, {2, 5, 3, 3}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], in[1], [](double x, double y) { return x * y; })};
  };
  const CaseReport report = ExamineCase(c, runtime->operators(), runtime->backend(gpu), gpu);
  CHECK(report.problems == std::vector<std::string>{});
  CHECK(report.trials > 10);
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], in[1], [](double x, double y) { return x * y + 1e-3; })};
  };
  CHECK(!ExamineCase(c, runtime->operators(), runtime->backend(gpu), gpu).problems.empty());
}

}  // namespace
}  // namespace mxtrain::test
