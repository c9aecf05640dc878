// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/mxnet_symbol.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/operator/arithmetic.h"
#include "mxtrain/operator/mxnet_names.h"
#include "tests/support/vectors.h"

namespace mxtrain::mxnet {
namespace {

using test::Strings;

struct Fixture {
  std::shared_ptr<OperatorRegistry> operators = BuiltinOperators();
  Runtime runtime{RuntimeOptions(), operators};
  Symbol data = Symbol::Variable("data");

  Symbol Layer(const Symbol& in, const char* hidden) {
    const mxtrain::Symbol input = in;
    return Symbol::Create(*operators, "FullyConnected", "", {{"num_hidden", hidden}}, {&input, 1});
  }
};

TEST_CASE_FIXTURE(Fixture, "a net by MXNet's names: lists, shapes, bind, forward, backward") {
  // y = 2 - (w1 x + b1 + w2 x + b2) / 4, of two unnamed layers of one input.
  const Symbol net = 2 - (Layer(data, "1") + Layer(data, "1")) / 4;
  CHECK(net.list_arguments() == Strings{"data", "fullyconnected0_weight", "fullyconnected0_bias",
                                        "fullyconnected1_weight", "fullyconnected1_bias"});
  CHECK(net.list_outputs().size() == 1);
  CHECK(net.list_auxiliary_states().empty());
  const auto [arg_shapes, out_shapes, aux_shapes] = net.infer_shape({{"data", {3, 2}}});
  CHECK(arg_shapes == std::vector<TShape>{{3, 2}, {1, 2}, {1}, {1, 2}, {1}});
  CHECK(out_shapes == std::vector<TShape>{{3, 1}});
  CHECK(aux_shapes.empty());

  Executor executor = net.simple_bind(runtime, Context::cpu(), {{"data", {3, 2}}});
  CHECK(executor.arg_dict().size() == 5);
  executor.arg_dict().at("data").CopyFrom(NDArray::FromVector(runtime, {3, 2}, {1, 2, 3, 4, 5, 6}));
  executor.arg_dict().at("fullyconnected0_weight") = 1;
  executor.arg_dict().at("fullyconnected1_weight") = 3;
  executor.arg_dict().at("fullyconnected1_bias") = 8;
  CHECK_THROWS_AS(executor.outputs(), Error);
  CHECK_THROWS_AS(executor.backward(), Error);
  for (const bool is_train : {false, true}) {
    executor.forward(is_train);
    // 2 - (4 (x0 + x1) + 8) / 4
    CHECK(executor.outputs()[0].ToVector() == std::vector<float>{-3, -7, -11});
  }
  executor.backward({NDArray::FromVector(runtime, {3, 1}, {4, 8, -4})});
  CHECK(executor.grad_dict().at("fullyconnected0_weight").ToVector() ==
        std::vector<float>{-1 - 6 + 5, -2 - 8 + 6});
  CHECK(executor.grad_dict().at("fullyconnected1_bias").ToVector() == std::vector<float>{-2});
  CHECK(executor.grad_dict().at("data").ToVector() == std::vector<float>{-4, -4, -8, -8, 4, 4});
}

TEST_CASE_FIXTURE(Fixture, "labels have no gradient, and auxiliary states are arrays") {
  const mxtrain::Symbol layer = Layer(data, "4");
  const mxtrain::Symbol norm = Symbol::Create(*operators, "BatchNorm", "", {}, {&layer, 1});
  const Symbol net = Symbol::Create(*operators, "SoftmaxOutput", "softmax", {}, {&norm, 1});
  Executor executor = net.simple_bind(runtime, Context::cpu(), {{"data", {2, 3}}});
  CHECK(executor.aux_dict().size() == 2);
  CHECK(executor.arg_dict().contains("softmax_label"));
  CHECK_FALSE(executor.grad_dict().contains("softmax_label"));
  executor.forward(true);
  executor.backward();
  CHECK(executor.outputs()[0].shape() == TShape{2, 4});
  CHECK_THROWS_AS(net.simple_bind(runtime, Context::cpu(), {}), Error);
}

TEST_CASE_FIXTURE(Fixture, "arithmetic of symbols is that of numbers") {
  const Symbol other = Symbol::Variable("other");
  const struct {
    Symbol net;
    double (*expected)(double a, double b);
  } cases[] = {{-data, [](double a, double) { return -a; }},
               {data + other, [](double a, double b) { return a + b; }},
               {data - other, [](double a, double b) { return a - b; }},
               {data * other, [](double a, double b) { return a * b; }},
               {data / other, [](double a, double b) { return a / b; }},
               {data + 3, [](double a, double) { return a + 3; }},
               {data - 3, [](double a, double) { return a - 3; }},
               {data * 3, [](double a, double) { return a * 3; }},
               {data / 4, [](double a, double) { return a / 4; }},
               {3 + data, [](double a, double) { return 3 + a; }},
               {3 - data, [](double a, double) { return 3 - a; }},
               {3 * data, [](double a, double) { return 3 * a; }},
               {3 / data, [](double a, double) { return 3 / a; }},
               {-(data * data - other * 2) / (other + 1),
                [](double a, double b) { return -(a * a - b * 2) / (b + 1); }}};
  for (const auto& c : cases) {
    const Strings names = c.net.list_arguments();
    std::map<std::string, TShape> shapes;
    for (const std::string& name : names) shapes[name] = TShape{2};
    Executor executor = c.net.simple_bind(runtime, Context::cpu(), shapes);
    executor.arg_dict().at("data").CopyFrom(NDArray::FromVector(runtime, {2}, {1.5, -4}));
    if (executor.arg_dict().contains("other"))
      executor.arg_dict().at("other").CopyFrom(NDArray::FromVector(runtime, {2}, {8, 0.25}));
    executor.forward();
    const std::vector<float> y = executor.outputs()[0].ToVector();
    CHECK(y[0] == doctest::Approx(c.expected(1.5, 8)));
    CHECK(y[1] == doctest::Approx(c.expected(-4, 0.25)));
  }
  const std::vector<mxtrain::Symbol> both = {data, other};
  CHECK_THROWS_WITH_AS(mxtrain::Symbol::Group(both) + 1,
                       "_plus_scalar of a symbol with 2 outputs (data, other); choose one of "
                       "them, as in symbol[0]",
                       Error);
}

// y = x x, whose gradient may overwrite what it reads: the output (`kOut`), the argument (`kIn`).
enum class Overwrites { kNothing, kIn, kOut };

class SquareOp : public Operator {
 public:
  void Forward(const OpContext& ctx, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>&) override {
    const auto s = ctx.run_ctx.get_stream<cpu>();
    const auto x = in_data[0].FlatTo2D<cpu, float>(s), y = out_data[0].FlatTo2D<cpu, float>(s);
    ASSIGN_DISPATCH(y, req[0], x * x);
  }
  void Backward(const OpContext& ctx, const std::vector<TBlob>& out_grad,
                const std::vector<TBlob>& in_data, const std::vector<TBlob>& out_data,
                const std::vector<OpReqType>& req, const std::vector<TBlob>& in_grad,
                const std::vector<TBlob>&) override {
    const auto s = ctx.run_ctx.get_stream<cpu>();
    const auto x = in_data[0].FlatTo2D<cpu, float>(s), y = out_data[0].FlatTo2D<cpu, float>(s),
               head = out_grad[0].FlatTo2D<cpu, float>(s), dx = in_grad[0].FlatTo2D<cpu, float>(s);
    ASSIGN_DISPATCH(dx, req[0], head * 2 * x + y * 0);
  }
};

template <Overwrites kWhat>
class SquareProp : public OperatorProperty {
 public:
  std::string TypeString() const override { return "square_of"; }
  void Init(const Kwargs&) override {}
  std::map<std::string, std::string> GetParams() const override { return {}; }
  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>*) const override {
    (*out_shape)[0] = (*in_shape)[0];
    return (*out_shape)[0].known();
  }
  std::vector<std::pair<int, void*>> BackwardInplaceOption(
      const std::vector<int>&, const std::vector<int>& in_data, const std::vector<int>& out_data,
      const std::vector<void*>& in_grad) const override {
    if (kWhat == Overwrites::kIn) return {{in_data[0], in_grad[0]}};
    if (kWhat == Overwrites::kOut) return {{out_data[0], in_grad[0]}};
    return {};
  }
  mxnet::Operator* CreateOperator(Context) const override { return new SquareOp; }
};

// The gradient of data, and how many gradients run in place.
template <Overwrites kWhat>
std::pair<std::vector<float>, int> GradientOfSquares() {
  const auto operators = BuiltinOperators();
  OperatorRegistry& registry = *operators;
  MXTRAIN_REGISTER_OP_PROPERTY(square_of, SquareProp<kWhat>);
  Runtime runtime({}, operators);
  // data + 1, squared twice: what the second gradient reads is in the arena, and nobody else's.
  mxtrain::Symbol net = Symbol::Variable("data") + 1;
  for (int i = 0; i < 2; ++i)
    net = mxtrain::Symbol::Create(registry, "square_of", "", {}, {&net, 1});
  net = net * 0.5;
  executor::BindRequest request;
  request.inputs = {"data"};
  request.shapes["data"] = TShape{2, 3};
  request.grad_req["data"] = executor::GradReq::kWrite;
  const auto bound = mxtrain::Executor::SimpleBind(runtime, net, request);
  const NDArray x = NDArray::FromVector(runtime, {2, 3}, {0, 1, -2, 0.5, -0.5, 3});
  const NDArray head = NDArray::FromVector(runtime, {2, 3}, {1, 1, 1, 2, 2, -1});
  bound->Forward({&x, 1});
  bound->Backward({&head, 1});
  int inplace = 0;
  const auto& plan = bound->memory_plan();
  for (size_t id = 0; id < bound->graph().nodes.size(); ++id) {
    const auto& node = bound->graph().nodes[id];
    if (node.kind == Node::Kind::kBackward && node.op->TypeString() == "square_of")
      inplace += plan.inplace[id][0];
  }
  return {bound->grad("data").ToVector(), inplace};
}

TEST_CASE("a gradient may overwrite an argument or an output that backward reads last") {
  const auto [plain, none] = GradientOfSquares<Overwrites::kNothing>();
  CHECK(none == 0);
  const double x[] = {0, 1, -2, 0.5, -0.5, 3}, head[] = {1, 1, 1, 2, 2, -1};
  for (size_t i = 0; i < 6; ++i)  // d/dx (x + 1)^4 / 2
    CHECK(plain[i] == doctest::Approx(head[i] * 2 * (x[i] + 1) * (x[i] + 1) * (x[i] + 1)));
  const auto [over_in, in_count] = GradientOfSquares<Overwrites::kIn>();
  CHECK(over_in == plain);
  CHECK(in_count >= 1);
  const auto [over_out, out_count] = GradientOfSquares<Overwrites::kOut>();
  CHECK(over_out == plain);
  CHECK(out_count >= 1);
}

}  // namespace
}  // namespace mxtrain::mxnet
