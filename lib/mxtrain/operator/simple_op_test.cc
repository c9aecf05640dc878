// SPDX-License-Identifier: Apache-2.0
// Toy operators, one for each feature of a declaration; each runs through the operator cases.
#include "mxtrain/operator/simple_op.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr DeviceType kCpu = DeviceType::kCPU;

template <typename F, typename... Blobs>
void Apply32(TBlob* out, OpReqType req, const F& f, const Blobs&... in) {
  SwitchFloating(out->type, "toy",
                 [&](auto tag) { MapElements<typename decltype(tag)::type>(*out, req, f, in...); });
}

constexpr auto kTwice = [](auto x) { return x + x; };
constexpr auto kProduct = [](auto a, auto b) { return a * b; };
constexpr auto kSum = [](auto a, auto b) { return a + b; };

void Twice(const TBlob& x, const EnvArguments&, TBlob* y, OpReqType req, RunContext) {
  Apply32(y, req, kTwice, x);
}
void TwiceGradient(const OutputGrad& g, const EnvArguments&, TBlob* dx, OpReqType req, RunContext) {
  Apply32(dx, req, kTwice, g.data);
}

void Exp(const TBlob& x, const EnvArguments&, TBlob* y, OpReqType req, RunContext) {
  Apply32(
      y, req, [](auto v) { return std::exp(v); }, x);
}
void ExpGradient(const OutputGrad& g, const OutputValue& y, const EnvArguments&, TBlob* dx,
                 OpReqType req, RunContext) {
  Apply32(dx, req, kProduct, g.data, y.data);
}

void Power(const TBlob& x, const EnvArguments& env, TBlob* y, OpReqType req, RunContext) {
  Apply32(
      y, req, [p = env.scalar](auto v) { return static_cast<decltype(v)>(std::pow(v, p)); }, x);
}
void PowerGradient(const OutputGrad& g, const Input0& x, const EnvArguments& env, TBlob* dx,
                   OpReqType req, RunContext) {
  Apply32(
      dx, req,
      [p = env.scalar](auto h, auto v) {
        return static_cast<decltype(v)>(h * p * std::pow(v, p - 1));
      },
      g.data, x.data);
}

void Add(const TBlob& a, const TBlob& b, const EnvArguments&, TBlob* y, OpReqType req, RunContext) {
  Apply32(y, req, kSum, a, b);
}
void AddGradient(const OutputGrad& g, const EnvArguments&, TBlob* da, TBlob* db, OpReqType req_a,
                 OpReqType req_b, RunContext) {
  const auto same = [](auto h) { return h; };
  Apply32(db, req_b, same, g.data);
  Apply32(da, req_a, same, g.data);
}

// exp(a + b): both gradients are head * output.
void ExpSum(const TBlob& a, const TBlob& b, const EnvArguments&, TBlob* y, OpReqType req,
            RunContext) {
  Apply32(
      y, req, [](auto p, auto q) { return std::exp(p + q); }, a, b);
}
void ExpSumGradient(const OutputGrad& g, const OutputValue& y, const EnvArguments&, TBlob* da,
                    TBlob* db, OpReqType req_a, OpReqType req_b, RunContext) {
  Apply32(db, req_b, kProduct, g.data, y.data);
  Apply32(da, req_a, kProduct, g.data, y.data);
}

void Multiply(const TBlob& a, const TBlob& b, const EnvArguments&, TBlob* y, OpReqType req,
              RunContext) {
  Apply32(y, req, kProduct, a, b);
}
void MultiplyGradient(const OutputGrad& g, const Input0& a, const Input1& b, const EnvArguments&,
                      TBlob* da, TBlob* db, OpReqType req_a, OpReqType req_b, RunContext) {
  Apply32(db, req_b, kProduct, g.data, a.data);
  Apply32(da, req_a, kProduct, g.data, b.data);
}

struct ShiftParam : Parameter<ShiftParam> {
  double by = 0;
  static void Declare(Fields<ShiftParam>& f) {
    f.Add("by", &ShiftParam::by).Required().Help("what is added");
  }
};
void Shift(const TBlob& x, const EnvArguments& env, TBlob* y, OpReqType req, RunContext) {
  Apply32(
      y, req, [by = env.As<ShiftParam>().by](auto v) { return static_cast<decltype(v)>(v + by); },
      x);
}

// The sum of all elements, using scratch as large as the input.
TShape OneElement(const TShape& src, const EnvArguments&) {
  return src.ndim() < 1 ? TShape{} : TShape{1};
}
void Total(const TBlob& x, const EnvArguments& env, TBlob* y, OpReqType req, RunContext) {
  double* copy = env.resource[0].GetSpace<double>(x.Size());
  SwitchFloating(y->type, "toy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    double sum = 0;
    for (int64_t i = 0; i < x.Size(); ++i) copy[i] = x.dptr<T>()[i];
    for (int64_t i = 0; i < x.Size(); ++i) sum += copy[i];
    SwitchReq(req, [&](auto) { Assign(req, y->dptr<T>(), 0, static_cast<ComputeOf<T>>(sum)); });
  });
}
void TotalGradient(const OutputGrad& g, const EnvArguments&, TBlob* dx, OpReqType req,
                   RunContext ctx) {
  SwitchFloating(dx->type, "toy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* head = g.data.dptr<T>();
    Map<T>(ctx, *dx, req, [head](int64_t) { return static_cast<ComputeOf<T>>(head[0]); });
  });
}

// The larger elements of two matrices, stacked vertically.
TShape StackShape(const TShape& a, const TShape& b, const EnvArguments&) {
  return TShape{a[0] + b[0], a[1]};
}
void Stack(const TBlob& a, const TBlob& b, const EnvArguments&, TBlob* y, OpReqType req,
           RunContext ctx) {
  const float *first = a.dptr<float>(), *second = b.dptr<float>();
  const int64_t n = a.Size();
  Map<float>(ctx, *y, req, [=](int64_t i) { return i < n ? first[i] : second[i - n]; });
}

// Adds noise and returns the same noise in the gradient: both draw the same numbers.
void Noise(const TBlob& x, const EnvArguments& env, TBlob* y, OpReqType req, RunContext ctx) {
  const float* in = x.dptr<float>();
  Map<float>(ctx, *y, req, [in, r = env.resource[0]](int64_t i) {
    return in[i] * r.Uniform(static_cast<uint64_t>(i));
  });
}
void NoiseGradient(const OutputGrad& g, const EnvArguments& env, TBlob* dx, OpReqType req,
                   RunContext ctx) {
  const float* head = g.data.dptr<float>();
  Map<float>(ctx, *dx, req, [head, r = env.resource[0]](int64_t i) {
    return head[i] * r.Uniform(static_cast<uint64_t>(i));
  });
}

std::unique_ptr<OperatorRegistry> Toys() {
  auto registry = std::make_unique<OperatorRegistry>();
  OperatorRegistry& r = *registry;
  SimpleOp(r, "twice")
      .set_function(kCpu, Twice, kInplaceInOut)
      .set_gradient(kCpu, TwiceGradient, kInplaceOutIn)
      .set_elementwise(Elementwise::kZeroToZero)
      .set_identity({}, {});
  SimpleOp(r, "exp")
      .set_function(kCpu, Exp, kNoInplace)
      .set_gradient(kCpu, ExpGradient, kInplaceOutIn)
      .set_elementwise(Elementwise::kYes);
  SimpleOp(r, "power")
      .set_function(kCpu, Power, kInplaceInOut)
      .set_gradient(kCpu, PowerGradient, kNoInplace)
      .set_enable_scalar(true, 2);
  SimpleOp(r, "add")
      .set_function(kCpu, Add, kInplaceLhsOut)
      .set_gradient(kCpu, AddGradient, kInplaceOutLhs)
      .set_elementwise(Elementwise::kZeroToZero)
      .set_identity({}, {{0, 0}, {0, 1}});
  SimpleOp(r, "exp_sum")
      .set_function(kCpu, ExpSum, kNoInplace)
      .set_gradient(kCpu, ExpSumGradient, kInplaceOutLhs);
  SimpleOp(r, "multiply")
      .set_function(kCpu, Multiply, kInplaceLhsOut)
      .set_gradient(kCpu, MultiplyGradient, kInplaceOutLhs);
  SimpleOp(r, "shift")
      .set_function(kCpu, Shift, kInplaceInOut)
      .set_kwargs_struct<ShiftParam>()
      .add_alias("move");
  SimpleOp(r, "total")
      .set_function(kCpu, Total, kNoInplace)
      .set_gradient(kCpu, TotalGradient, kNoInplace)
      .set_shape_function(OneElement)
      .set_resource_request(
          ResourceRequest::kTempSpace,
          [](const std::vector<TShape>& in, const EnvArguments&) { return 8 * in[0].Size(); });
  SimpleOp(r, "stack")
      .set_function(kCpu, Stack, kNoInplace)
      .set_shape_function(StackShape)
      .set_types({DType::kFloat32})
      .set_arguments({"upper", "lower"});
  SimpleOp(r, "noise")
      .set_function(kCpu, Noise, kInplaceInOut)
      .set_gradient(kCpu, NoiseGradient, kInplaceOutIn)
      .set_resource_request(ResourceRequest::kRandom)
      .set_types({DType::kFloat32});
  SimpleOp(r, "free").set_function(kCpu, Twice, kNoInplace).set_enable_kwargs(true);
  for (const char* name :
       {"twice", "exp", "power", "add", "exp_sum", "multiply", "shift", "total", "free"})
    SimpleOp(r, name).set_types(kFloatingTypes);
  return registry;
}

OperatorCase Case(const std::string& op, size_t arguments,
                  std::function<Arrays(const Arrays&)> forward, Kwargs kwargs = {}) {
  OperatorCase c;
  c.name = c.op = op;
  c.kwargs = std::move(kwargs);
  c.shapes.assign(arguments, TShape{2, 5, 1, 3});
  c.inputs = {Uniform(0.3, 1.5)};
  c.forward = [forward](const Arrays& in, const Arrays&) { return forward(in); };
  c.tolerance = {16, "a few operations"};
  c.must_accept = {"simple"};
  return c;
}

void ExamineToy(const OperatorCase& c) {
  const auto toys = Toys();
  const CaseReport report = ExamineCase(c, *toys, TestBackend());
  for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  CHECK(report.trials > 0);
}

TEST_CASE("unary gradients that read the head, the output, the input") {
  ExamineToy(Case("twice", 1, [](const Arrays& in) {
    return Arrays{Apply(in[0], [](double x) { return 2 * x; })};
  }));
  ExamineToy(Case("exp", 1, [](const Arrays& in) {
    return Arrays{Apply(in[0], [](double x) { return std::exp(x); })};
  }));
  ExamineToy(Case("power", 1, [](const Arrays& in) {
    return Arrays{Apply(in[0], [](double x) { return x * x; })};
  }));
  ExamineToy(Case(
      "power", 1,
      [](const Arrays& in) { return Arrays{Apply(in[0], [](double x) { return x * x * x; })}; },
      {{"scalar", "3"}}));
}

TEST_CASE("binary gradients that read the head, the output, the inputs") {
  ExamineToy(Case("add", 2, [](const Arrays& in) {
    return Arrays{Apply(in[0], in[1], [](double a, double b) { return a + b; })};
  }));
  ExamineToy(Case("exp_sum", 2, [](const Arrays& in) {
    return Arrays{Apply(in[0], in[1], [](double a, double b) { return std::exp(a + b); })};
  }));
  ExamineToy(Case("multiply", 2, [](const Arrays& in) {
    return Arrays{Apply(in[0], in[1], [](double a, double b) { return a * b; })};
  }));
}

TEST_CASE("keyword arguments, shape functions, scratch, random numbers") {
  OperatorCase shift =
      Case("shift", 1,
           [](const Arrays& in) { return Arrays{Apply(in[0], [](double x) { return x - 0.25; })}; },
           {{"by", "-0.25"}});
  shift.backward = false;
  ExamineToy(shift);
  ExamineToy(Case("total", 1, [](const Arrays& in) {
    double sum = 0;
    for (const double x : in[0]) sum += x;
    return Arrays{{sum}};
  }));
  OperatorCase stack = Case("stack", 2, [](const Arrays& in) {
    Values both = in[0];
    both.insert(both.end(), in[1].begin(), in[1].end());
    return Arrays{both};
  });
  stack.shapes = {TShape{2, 3}, TShape{1, 3}};
  stack.types = {DType::kFloat32};
  stack.backward = false;
  ExamineToy(stack);
  OperatorCase noise = Case("noise", 1, {});
  noise.types = {DType::kFloat32};
  noise.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    for (size_t i = 0; i < r.in[0].size(); ++i) {
      const double factor = r.out[0][i] / r.in[0][i];
      if (factor < 0 || factor > 1) problems.push_back("a factor outside [0, 1]");
      if (std::fabs(r.in_grad[0][i] - factor * r.head[0][i]) > 1e-5)
        problems.push_back("the gradient drew a different number");
    }
    return problems;
  };
  ExamineToy(noise);
}

TEST_CASE("the property reflects the declaration") {
  const auto toys = Toys();
  const auto power = toys->Create("power", {}), add = toys->Create("add", {}),
             shift = toys->Create("move", {{"by", "1"}});
  CHECK(power->GetParams() == Kwargs{{"scalar", "2"}});
  CHECK(power->DescribeParams()[0].default_text == "2");
  CHECK(power->DeclareBackwardDependency({0}, {1}, {2}) == std::vector<int>{0, 1});
  CHECK(power->ForwardInplaceOption() == std::vector<InplacePair>{{0, 0}});
  CHECK(power->BackwardInplaceOption().empty());
  CHECK(toys->Create("exp", {})->DeclareBackwardDependency({0}, {1}, {2}) ==
        std::vector<int>{0, 2});
  CHECK(toys->Create("multiply", {})->DeclareBackwardDependency({0}, {1, 2}, {3}) ==
        std::vector<int>{0, 1, 2});
  CHECK(add->DeclareBackwardDependency({0}, {1, 2}, {3}) == std::vector<int>{0});
  CHECK(add->ListArguments() == std::vector<std::string>{"lhs", "rhs"});
  CHECK(add->BackwardIdentityOption() == std::vector<InplacePair>{{0, 0}, {0, 1}});
  CHECK(toys->Create("stack", {})->ListArguments() == std::vector<std::string>{"upper", "lower"});
  CHECK(shift->GetParams() == Kwargs{{"by", "1"}});
  CHECK(toys->Create("free", {{"any", "thing"}, {"__hidden__", "x"}})->GetParams() ==
        Kwargs{{"any", "thing"}});
  CHECK_THROWS_WITH(toys->Create("shift", {}),
                    "shift needs the parameter 'by' (number: what is added)");
  CHECK_THROWS_WITH(toys->Create("power", {{"skalar", "1"}}),
                    "power has no parameter 'skalar'; did you mean 'scalar'?");

  std::vector<TShape> in = {TShape{}, TShape{2, -1}}, out = {TShape{-1, 3}}, aux;
  in[0] = TShape();
  CHECK(add->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3});
  in = {TShape{2, 3}, TShape{2, 4}}, out = {TShape()};
  CHECK_THROWS_WITH(add->InferShape(&in, &out, &aux),
                    "add: rhs has shape [2, 4], but [2, 3] was expected");
}

TEST_CASE("a second object adds to the entry") {
  OperatorRegistry registry;
  SimpleOp(registry, "twice").describe("two of it");
  SimpleOp(registry, "twice").set_function(kCpu, Twice, kInplaceInOut);
  SimpleOp(registry, "twice").set_function(DeviceType::kGPU, Twice, kInplaceInOut);
  CHECK(registry.Kernels("twice", kCpu).size() == 1);
  CHECK(registry.Kernels("twice", DeviceType::kGPU).size() == 1);
  CHECK(registry.Create("twice", {})->Description() == "two of it");
}

// power with the exponent 2.
class Square final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    TBlob out = args.out_data[0];
    Apply32(&out, args.req[0], kProduct, args.in_data[0], args.in_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    TBlob grad = args.in_grad[0];
    Apply32(
        &grad, args.req[0], [](auto g, auto x) { return 2 * g * x; }, args.out_grad[0],
        args.in_data[0]);
  }
};

TEST_CASE("an entry may have further kernels, which read its parameters") {
  const auto toys = Toys();
  const PlanFn plan = [](const OperatorProperty& property, const PlanRequest& request,
                         Backend&) -> Expected<Plan, Refusal> {
    if (SimpleOp::ArgumentsOf(property).scalar != 2) return Refusal{"2 only"};
    Plan square = PlainPlan(property, request);
    square.make = [] { return std::make_unique<Square>(); };
    return square;
  };
  toys->AddKernel({"power", kCpu, "square", 10, OfFloats(plan)});
  const auto accepting = [&](double exponent, std::vector<std::string> kernels) {
    OperatorCase c =
        Case("power", 1,
             [exponent](const Arrays& in) {
               return Arrays{Apply(in[0], [exponent](double x) { return std::pow(x, exponent); })};
             },
             {{"scalar", std::to_string(exponent)}});
    c.must_accept = std::move(kernels);
    return ExamineCase(c, *toys, TestBackend()).problems;
  };
  CHECK(accepting(2, {"simple", "square"}).empty());
  CHECK(accepting(3, {"simple"}).empty());
  CHECK_FALSE(accepting(3, {"square"}).empty());
  CHECK_THROWS_WITH(SimpleOp::ArgumentsOf(*TestRegistry().Create("Flatten", {})),
                    "Flatten is not a SimpleOp");
}

TEST_CASE("invalid registrations are rejected") {
  const auto toys = Toys();
  const auto entry = [&](const char* name) { return SimpleOp(*toys, name); };
  CHECK_THROWS_WITH(
      entry("a").set_function(kCpu, Twice, kNoInplace).set_gradient(kCpu, AddGradient, kNoInplace),
      "SimpleOp a: unary and binary functions are mixed");
  CHECK_THROWS_WITH(entry("b").set_gradient(kCpu, TwiceGradient, kNoInplace),
                    "SimpleOp b: gradient for cpu(0) without a function; call set_function first");
  CHECK_THROWS_WITH(entry("c").set_enable_scalar(true).set_enable_kwargs(true),
                    "SimpleOp c: a scalar and keyword arguments cannot both be enabled");
  CHECK_THROWS_WITH(entry("c2").set_kwargs_struct<ShiftParam>().set_enable_scalar(true),
                    "SimpleOp c2: a scalar and keyword arguments cannot both be enabled");
  CHECK_THROWS_WITH(entry("d").set_function(kCpu, Twice, kInplaceLhsOut),
                    "SimpleOp d: kInplaceLhsOut is not an option of a unary function");
  CHECK_THROWS_WITH(entry("e").set_function(kCpu, Add, kInplaceInOut),
                    "SimpleOp e: kInplaceInOut is not an option of a binary function");
  CHECK_THROWS_WITH(entry("add").set_function(DeviceType::kGPU, Add, kNoInplace),
                    "SimpleOp add: kInplaceLhsOut on one device and kNoInplace on another; "
                    "in-place options must be the same on all devices");
  CHECK_THROWS_WITH(entry("twice").add_alias("exp"),
                    "operator twice: the name 'exp' is already taken by operator exp");
}

TEST_CASE("an operator without a gradient refuses a backward pass") {
  const auto toys = Toys();
  OperatorCase c = Case("shift", 1, [](const Arrays& in) { return in; }, {{"by", "0"}});
  c.must_accept = {};
  const CaseReport report = ExamineCase(c, *toys, TestBackend());
  REQUIRE(!report.kernels.empty());
  CHECK(report.kernels[0].refusal == "it has no gradient");
}

}  // namespace
}  // namespace mxtrain::test
