// SPDX-License-Identifier: Apache-2.0
// Operators in MXNet's form. The fragments FullyConnected and Pooling of its architecture guide are
// in tests/package/plugin_mxnet.
#include "mxtrain/operator/mxnet_operator.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"

namespace mxtrain::mxnet {

// y = scale * a * b + c, where c is an auxiliary state.
struct ScaleParam : public Parameter<ScaleParam> {
  float scale;
  bool extra;
  static void Declare(Fields<ScaleParam>& f) {
    f.Add("scale", &ScaleParam::scale).Default(2).Help("factor");
    f.Add("extra", &ScaleParam::extra).Default(false).Help("a hidden second output");
  }
};

class ScaleOp : public Operator {
 public:
  explicit ScaleOp(ScaleParam p) : param_(p) {}

  void Forward(const OpContext& ctx, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>& aux_states) override {
    MXTRAIN_ASSERT(ctx.requested.empty());
    MXTRAIN_ASSERT(in_data.size() == 2 && aux_states.size() == 1);
    MXTRAIN_ASSERT(req.size() == out_data.size());
    MXTRAIN_REAL_TYPE_SWITCH(out_data[0].type, Real, {
      using A = AccumulatorOf<Real>;
      const A scale = static_cast<A>(param_.scale);
      const Real *a = in_data[0].dptr<Real>(), *b = in_data[1].dptr<Real>(),
                 *c = aux_states[0].dptr<Real>();
      if (param_.extra) Assign(FlatTo1D<Real>(out_data[1]), req[1], 1);
      Assign(FlatTo1D<Real>(out_data[0]), req[0],
             [=](int64_t i) { return scale * A(a[i]) * A(b[i]) + A(c[i]); });
    });
  }

  void Backward(const OpContext&, const std::vector<TBlob>& out_grad,
                const std::vector<TBlob>& in_data, const std::vector<TBlob>& out_data,
                const std::vector<OpReqType>& req, const std::vector<TBlob>& in_grad,
                const std::vector<TBlob>& aux_states) override {
    MXTRAIN_ASSERT(out_grad.size() == 1 && in_data.size() == 2 && in_grad.size() == 2);
    MXTRAIN_ASSERT(out_data[0].dptr<void>() == nullptr && aux_states.size() == 1);
    MXTRAIN_REAL_TYPE_SWITCH(out_grad[0].type, Real, {
      using A = AccumulatorOf<Real>;
      const A scale = static_cast<A>(param_.scale);
      const Real* head = out_grad[0].dptr<Real>();
      const Real *a = in_data[0].dptr<Real>(), *b = in_data[1].dptr<Real>();
      const std::span<Real> da = FlatTo1D<Real>(in_grad[0]), db = FlatTo1D<Real>(in_grad[1]);
      // in_grad[0] may be out_grad[0], and in_grad[1] in_data[0]: each element is read before.
      Launch(OnCpu{}, static_cast<int64_t>(out_grad[0].Size()), [=, &req](int64_t i) {
        const A h = A(head[i]), to_a = scale * A(b[i]) * h, to_b = scale * A(a[i]) * h;
        if (req[0] != kNullOp) mxtrain::Assign(req[0], da.data(), i, to_a);
        if (req[1] != kNullOp) mxtrain::Assign(req[1], db.data(), i, to_b);
      });
    });
  }

 private:
  ScaleParam param_;
};

class ScaleProp : public OperatorProperty {
 public:
  std::string TypeString() const override { return "scale"; }
  void Init(const Kwargs& kwargs) override { param_.Init(kwargs, TypeString()); }
  std::map<std::string, std::string> GetParams() const override {
    const Kwargs params = param_.ToKwargs();
    return {params.begin(), params.end()};
  }
  std::vector<std::string> ListArguments() const override { return {"a", "b"}; }
  std::vector<std::string> ListOutputs() const override {
    return param_.extra ? std::vector<std::string>{"output", "ones"}
                        : std::vector<std::string>{"output"};
  }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"c"}; }
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>* aux_shape) const override {
    const TShape shape = (*in_shape)[0];
    out_shape->clear();
    if (!shape.known()) return false;
    UnifyShape(shape, &(*in_shape)[1], TypeString(), "b");
    out_shape->resize(param_.extra ? 2 : 1, shape);
    aux_shape->assign(1, shape);
    return true;
  }
  OperatorProperty* Copy() const override { return new ScaleProp(*this); }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[0], in_data[1]};
  }
  std::vector<std::pair<int, void*>> ForwardInplaceOption(
      const std::vector<int>& in_data, const std::vector<void*>& out_data) const override {
    return {{in_data[1], out_data[0]}};
  }
  std::vector<std::pair<int, void*>> BackwardInplaceOption(
      const std::vector<int>& out_grad, const std::vector<int>& in_data, const std::vector<int>&,
      const std::vector<void*>& in_grad) const override {
    return {{out_grad[0], in_grad[0]}, {in_data[0], in_grad[1]}};
  }
  Operator* CreateOperator(Context) const override { return new ScaleOp(param_); }

 private:
  ScaleParam param_;
};

}  // namespace mxtrain::mxnet

MXTRAIN_OPERATOR(mxnet_operator_test, registry) {
  MXTRAIN_REGISTER_OP_PROPERTY(scale, mxtrain::mxnet::ScaleProp)
      .describe("scale times the product of two arrays, plus a state")
      .add_arguments(mxtrain::mxnet::ScaleParam::Describe());
}

namespace mxtrain::mxnet {
namespace {

using test::Arrays;
using test::Values;

std::shared_ptr<OperatorRegistry> Scale() {
  auto registry = std::make_shared<OperatorRegistry>();
  mxtrain_register_mxnet_operator_test(*registry);
  return registry;
}

TEST_CASE("an operator in MXNet's form runs with every request, type and in-place pair") {
  for (const char* extra : {"0", "1"}) {
    test::OperatorCase c;
    c.name = "scale";
    c.op = "scale";
    c.kwargs = {{"scale", "-1.5"}, {"extra", extra}};
    c.shapes = {{3, 5}, {3, 5}};
    c.inputs = {test::Uniform(-1, 1)};
    c.forward = [&](const Arrays& in, const Arrays& aux) {
      Values y(in[0].size());
      for (size_t i = 0; i < y.size(); ++i) y[i] = -1.5 * in[0][i] * in[1][i] + aux[0][i];
      if (extra[0] == '0') return Arrays{y};
      return Arrays{y, Values(y.size(), 1.0)};
    };
    c.types = test::kAllFloatingTypes;
    c.tolerance = {16, "three operations"};
    c.must_accept = {"ref"};
    const test::CaseReport report = test::ExamineCase(c, *Scale(), test::TestBackend());
    CHECK(report.problems == std::vector<std::string>{});
    CHECK(report.trials > 10);
  }
}

TEST_CASE("the property says what its class in MXNet's form says") {
  const auto registry = Scale();
  const auto op = registry->Create("scale", {{"extra", "True"}, {"__lr_mult__", "2"}});
  CHECK(op->TypeString() == "scale");
  CHECK(op->Description() == "scale times the product of two arrays, plus a state");
  CHECK(op->GetParams() == Kwargs{{"scale", "2"}, {"extra", "True"}});  // in declaration order
  REQUIRE(op->DescribeParams().size() == 2);
  CHECK(op->DescribeParams()[0].name == "scale");
  CHECK(op->ListArguments() == std::vector<std::string>{"a", "b"});
  CHECK(op->ListAuxiliaryStates() == std::vector<std::string>{"c"});
  CHECK(op->NumOutputs() == 2);
  CHECK(op->NumVisibleOutputs() == 1);
  CHECK(op->NeedsHeadGradient());
  CHECK(op->DeclareBackwardDependency({0}, {1, 2}, {3, 4}) == std::vector<int>{0, 1, 2});
  CHECK(op->ForwardInplaceOption() == std::vector<InplacePair>{{1, 0}});
  // A hidden output has a head gradient natively, but no id in MXNet's form.
  CHECK(op->BackwardInplaceOption() == std::vector<InplacePair>{{0, 0}, {2, 1}});
  CHECK_THROWS_WITH_AS(registry->Create("scale", {{"scal", "1"}}),
                       doctest::Contains("scale has no parameter 'scal'"), Error);
}

TEST_CASE(
    "shape lists may be cleared while shapes are unknown, and are filled once they are known") {
  const auto op = Scale()->Create("scale", {});
  std::vector<TShape> in(2), out(1), aux(1);
  CHECK_FALSE(op->InferShape(&in, &out, &aux));
  CHECK(out == std::vector<TShape>(1));
  in[0] = TShape{4, 0};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{4, 0});
  CHECK(out == std::vector<TShape>{{4, 0}});
  CHECK(aux == std::vector<TShape>{{4, 0}});
}

TEST_CASE("arrays of integers are refused when the call is planned") {
  Runtime runtime({}, Scale());
  const NDArray in[] = {NDArray::Zeros(runtime, {2}, DType::kInt32),
                        NDArray::Zeros(runtime, {2}, DType::kInt32)};
  const NDArray aux = NDArray::Zeros(runtime, {2}, DType::kInt32);
  CHECK_THROWS_WITH_AS(Invoke("scale", in, {}, {&aux, 1}),
                       doctest::Contains("computes with floating types, not int32"), Error);
}

TEST_CASE("a call on arrays") {
  Runtime runtime({}, Scale());
  const NDArray in[] = {NDArray::FromVector(runtime, {3}, {1, 2, 3}),
                        NDArray::FromVector(runtime, {3}, {4, 5, 6})};
  const NDArray aux = NDArray::FromVector(runtime, {3}, {0.5, 0, -1});
  const std::vector<NDArray> out = Invoke("scale", in, {{"extra", "1"}}, {&aux, 1});
  REQUIRE(out.size() == 1);
  CHECK(out[0].ToVector() == std::vector<float>{8.5f, 20, 35});
}

// x plus noise in forward; its gradient multiplies by random numbers of its own, by way of scratch.
class NoiseOp : public Operator {
 public:
  enum Request { kRandom, kTempSpace };
  void Forward(const OpContext& ctx, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>&) override {
    MXTRAIN_REAL_TYPE_SWITCH(in_data[0].type, Real, {
      const std::span<const Real> in = FlatTo1D<Real>(in_data[0]);
      if (!ctx.is_train) return Assign(FlatTo1D<Real>(out_data[0]), req[0], in);
      const auto space =
          ctx.requested[kTempSpace].get_space(in_data[0].shape, get_stream<cpu>(ctx.run_ctx));
      const std::span<float> noise = FlatTo1D<float>(space);
      ctx.requested[kRandom].get_random(get_stream<cpu>(ctx.run_ctx)).SampleUniform(noise);
      Assign(FlatTo1D<Real>(out_data[0]), req[0], [in, noise](int64_t i) {
        const auto at = static_cast<size_t>(i);
        return static_cast<Real>(static_cast<float>(in[at]) + noise[at]);
      });
    });
  }
  void Backward(const OpContext& ctx, const std::vector<TBlob>& out_grad, const std::vector<TBlob>&,
                const std::vector<TBlob>&, const std::vector<OpReqType>& req,
                const std::vector<TBlob>& in_grad, const std::vector<TBlob>&) override {
    MXTRAIN_ASSERT(ctx.requested.size() == 1);
    const TBlob factor = ctx.requested[0].get_space({1});
    factor.dptr<float>()[0] = 3;
    MXTRAIN_REAL_TYPE_SWITCH(out_grad[0].type, Real, {
      const Real* head = out_grad[0].dptr<Real>();
      Assign(FlatTo1D<Real>(in_grad[0]), req[0], [=](int64_t i) {
        return static_cast<Real>(factor.dptr<float>()[0] * static_cast<float>(head[i]));
      });
    });
  }
};

class NoiseProp : public OperatorProperty {
 public:
  std::string TypeString() const override { return "noise"; }
  void Init(const Kwargs&) override {}
  std::map<std::string, std::string> GetParams() const override { return {}; }
  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>*) const override {
    (*out_shape)[0] = (*in_shape)[0];
    return (*out_shape)[0].known();
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const override {
    return {ResourceRequest::kRandom, {ResourceRequest::kTempSpace, in_shape[0].Size() * 4}};
  }
  std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>&) const override {
    return {ResourceRequest::kTempSpace};
  }
  Operator* CreateOperator(Context) const override { return new NoiseOp; }
};

TEST_CASE("an operator gets what it requested, in this order") {
  OperatorRegistry registry;
  MXTRAIN_REGISTER_OP_PROPERTY(noise, NoiseProp);
  test::OperatorCase c;
  c.name = "noise";
  c.op = "noise";
  c.shapes = {{7}};
  c.inputs = {test::Uniform(0, 1)};
  c.types = {DType::kFloat32};
  c.check = [](const test::CaseResult& result) {
    std::vector<std::string> problems;
    for (size_t i = 0; i < result.out[0].size(); ++i) {
      const double noise = result.out[0][i] - result.in[0][i];
      if (noise < -1e-6 || noise > 1 + 1e-6) problems.push_back("the noise is not in [0, 1)");
      if (!result.in_grad.empty() && std::abs(result.in_grad[0][i] - 3 * result.head[0][i]) > 1e-6)
        problems.push_back("the gradient is not three times the head gradient");
    }
    if (std::abs(result.out[0][0] - result.in[0][0] - result.out[0][1] + result.in[0][1]) < 1e-9)
      problems.push_back("there is no noise");
    return problems;
  };
  const test::CaseReport report = test::ExamineCase(c, registry, test::TestBackend());
  CHECK(report.problems == std::vector<std::string>{});
  CHECK(report.trials > 0);
}

// A property with one mistake.
class WrongProp : public NoiseProp {
 public:
  enum Mistake { kNone, kName, kShapes, kForwardPair, kBackwardPair, kNoOperator, kNoBackward };
  explicit WrongProp(Mistake mistake) : mistake_(mistake) {}
  std::string TypeString() const override { return mistake_ == kName ? "Pooling" : "wrong"; }
  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>* aux_shape) const override {
    const bool known = NoiseProp::InferShape(in_shape, out_shape, aux_shape);
    if (mistake_ == kShapes) out_shape->push_back((*in_shape)[0]);
    return known;
  }
  std::vector<std::pair<int, void*>> ForwardInplaceOption(
      const std::vector<int>& in_data, const std::vector<void*>& out_data) const override {
    if (mistake_ == kForwardPair) return {{in_data[0], nullptr}};
    return {{in_data[0], out_data[0]}};
  }
  std::vector<std::pair<int, void*>> BackwardInplaceOption(
      const std::vector<int>&, const std::vector<int>&, const std::vector<int>& out_data,
      const std::vector<void*>& in_grad) const override {
    if (mistake_ == kBackwardPair) return {{out_data[0] + 1, in_grad[0]}};
    return {};
  }
  Operator* CreateOperator(Context ctx) const override {
    class ForwardOnly : public Operator {
      void Forward(const OpContext&, const std::vector<TBlob>&, const std::vector<OpReqType>&,
                   const std::vector<TBlob>&, const std::vector<TBlob>&) override {}
    };
    if (mistake_ == kNoBackward) return new ForwardOnly;
    return mistake_ == kNoOperator ? nullptr : NoiseProp::CreateOperator(ctx);
  }

 private:
  Mistake mistake_;
};

std::unique_ptr<OperatorRegistry> With(WrongProp::Mistake mistake) {
  auto registry = std::make_unique<OperatorRegistry>();
  RegisterOpProperty(*registry, "wrong",
                     [mistake] { return std::make_unique<WrongProp>(mistake); });
  return registry;
}

std::unique_ptr<mxtrain::Operator> Make(const OperatorRegistry& registry) {
  const TensorSpec specs[] = {{TShape{3}, DType::kFloat32, {}}};
  const OpReqType req[] = {kWriteTo};
  PlanRequest request;
  request.in = request.out = specs;
  request.out_req = req;
  return registry.Create("wrong", {})->CreatePlan(registry, request, test::TestBackend()).make();
}

TEST_CASE("mistakes in a property are named") {
  CHECK(Make(*With(WrongProp::kNone)) != nullptr);
  CHECK_THROWS_WITH_AS(
      With(WrongProp::kName),
      "operator wrong: its TypeString is 'Pooling'; it must be the registered name", Error);

  const auto shapes = With(WrongProp::kShapes)->Create("wrong", {});
  std::vector<TShape> in{{3}}, out(1), aux;
  CHECK_THROWS_WITH_AS(shapes->InferShape(&in, &out, &aux),
                       "wrong: InferShape left 2 shapes of outputs; expected 1", Error);
  CHECK_THROWS_WITH_AS(
      With(WrongProp::kForwardPair)->Create("wrong", {}),
      "wrong: ForwardInplaceOption returned a pair that is not of its arguments; pair an id with "
      "an element of its last list",
      Error);
  CHECK_THROWS_WITH_AS(With(WrongProp::kBackwardPair)->Create("wrong", {}),
                       doctest::Contains("wrong: BackwardInplaceOption returned a pair"), Error);
  CHECK_THROWS_WITH_AS(Make(*With(WrongProp::kNoOperator)),
                       "wrong: CreateOperator returned no operator for cpu(0)", Error);
  const auto no_backward = Make(*With(WrongProp::kNoBackward));
  CHECK_THROWS_WITH_AS(no_backward->Backward({{}, {}, {}, {}, {}, {}, {}}),
                       "this operator has no Backward, but a gradient needs it", Error);
}

// Counts the calls of its operators, by the device that they were created for.
class DeviceOfProp final : public NoiseProp {
 public:
  static std::atomic<int> on_cpu, on_gpu;

  std::string TypeString() const override { return "device_of"; }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {};
  }
  Operator* CreateOperator(Context ctx) const override {
    class Where final : public Operator {
     public:
      explicit Where(Context made_for) : on_gpu_(made_for.type == DeviceType::kGPU) {}
      void Forward(const OpContext& ctx, const std::vector<TBlob>&, const std::vector<OpReqType>&,
                   const std::vector<TBlob>& out_data, const std::vector<TBlob>&) override {
        CHECK(out_data[0].ctx.type == (on_gpu_ ? DeviceType::kGPU : DeviceType::kCPU));
        CHECK((ctx.run_ctx.get_stream<gpu>() != nullptr) == on_gpu_);
        ++(on_gpu_ ? on_gpu : on_cpu);
      }

     private:
      const bool on_gpu_;
    };
    return new Where(ctx);
  }
};
std::atomic<int> DeviceOfProp::on_cpu, DeviceOfProp::on_gpu;

TEST_CASE("a property that is registered for GPUs too has a kernel there") {
  for (const bool gpu_first : {false, true}) {
    const auto runtime = test::NewFakeGpuRuntimeWithout({}, {}, [&](OperatorRegistry* to) {
      OperatorRegistry& registry = *to;
      if (gpu_first) MXTRAIN_REGISTER_OP_PROPERTY_ON(device_of, DeviceOfProp, gpu::kDevMask);
      MXTRAIN_REGISTER_OP_PROPERTY(device_of, DeviceOfProp).describe("where it computes");
      if (!gpu_first) MXTRAIN_REGISTER_OP_PROPERTY_ON(device_of, DeviceOfProp, gpu::kDevMask);
      CHECK_THROWS_WITH_AS(MXTRAIN_REGISTER_OP_PROPERTY_ON(device_of, DeviceOfProp, gpu::kDevMask),
                           doctest::Contains("the name 'device_of' is already taken"), Error);
    });
    CHECK(runtime->operators().Create("device_of", {})->Description() == "where it computes");
    CHECK(runtime->operators().Kernels("device_of", DeviceType::kGPU).size() == 1);
    DeviceOfProp::on_cpu = DeviceOfProp::on_gpu = 0;
    for (const Context ctx : {Context::cpu(), Context::gpu(0), Context::gpu(0)}) {
      const NDArray x = NDArray::Zeros(*runtime, {2}, DType::kFloat32, ctx);
      Invoke("device_of", {&x, 1});
    }
    runtime->engine().WaitForAll();
    CHECK(DeviceOfProp::on_cpu == 1);
    CHECK(DeviceOfProp::on_gpu == 2);
  }
}

TEST_CASE("a name that is taken is refused") {
  const auto registry = With(WrongProp::kNone);
  CHECK_THROWS_WITH_AS(
      RegisterOpProperty(*registry, "wrong",
                         [] { return std::make_unique<WrongProp>(WrongProp::kNone); }),
      doctest::Contains("the name 'wrong' is already taken"), Error);
}

}  // namespace
}  // namespace mxtrain::mxnet
