// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/symbol/symbol.h"
#include "tests/support/error_message.h"
#include "tests/support/tiny_operators.h"

namespace mxtrain {
namespace {

using test::MessageOf;

class TinyNets {
 public:
  TinyNets() { test::AddTinyOperators(registry); }
  Symbol Op(const char* op, const std::string& name, const Kwargs& kwargs,
            const std::vector<Symbol>& inputs, int line = 0) const {
    return Symbol::Create(registry, op, name, kwargs, inputs, {}, {},
                          line ? "net.yaml:" + std::to_string(line) : "");
  }
  OperatorRegistry registry;
};

DType TypeOf(const Graph& graph, const InferredSpecs& specs, const std::string& name) {
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (graph.nodes[id].name == name) return specs.types[id][0];
  }
  FAIL("no node " << name);
  return DType::kUnknown;
}

}  // namespace

TEST_CASE_FIXTURE(TinyNets,
                  "shapes flow forward to parameters and labels, backward from heads to inputs") {
  const Symbol net =
      Op("SoftmaxOutput", "softmax", {},
         {Op("FullyConnected", "fc", {{"num_hidden", "10"}}, {Symbol::Variable("data")})});
  const auto shapes = net.InferShape({{"data", TShape{64, 784}}});
  CHECK(shapes.complete);
  CHECK(shapes.arguments == std::vector{TShape{64, 784}, TShape{10, 784}, TShape{10}, TShape{64}});
  CHECK(shapes.outputs == std::vector{TShape{64, 10}});
  CHECK_FALSE(net.InferShape({}).complete);
  CHECK(net.InferShape({{"softmax_label", TShape{5}}}).arguments[1] == TShape{10, -1});

  // Both ways through a sum: what one branch knows reaches the variable of the other.
  const Symbol a = Symbol::Variable("a"), b = Symbol::Variable("b");
  const Symbol sum =
      Op("elemwise_add", "sum", {}, {Op("Activation", "act", {{"act_type", "relu"}}, {a}), b});
  const auto both = sum.InferShape({{"b", TShape{2, -1}}, {"a", TShape{-1, 7}}});
  CHECK(both.complete);
  CHECK(both.arguments == std::vector{TShape{2, 7}, TShape{2, 7}});
  const auto part = sum.InferShape({{"b", TShape{2, -1}}});
  CHECK_FALSE(part.complete);
  CHECK(part.arguments[0] == TShape{2, -1});
}

TEST_CASE_FIXTURE(TinyNets, "auxiliary states and hidden outputs are inferred") {
  const Symbol bn = Op("BatchNorm", "bn", {}, {Symbol::Variable("x")});
  const auto shapes = bn.InferShape({{"x", TShape{2, 5, 4, 4}}});
  CHECK(shapes.auxiliaries == std::vector{TShape{5}, TShape{5}});
  const InferredSpecs specs = InferSpecs(bn.graph(), {{"x", TShape{2, 5, 4, 4}}}, {}, false);
  CHECK(specs.shapes.back() == std::vector{TShape{2, 5, 4, 4}, TShape{5}, TShape{5}});
}

TEST_CASE_FIXTURE(TinyNets, "attributes apply if nothing is given; 0 and -1 mean unknown") {
  const Symbol x = Symbol::Variable("x", {{"__shape__", "(0, 3)"}, {"__dtype__", "1"}});
  const Symbol net =
      Op("elemwise_add", "sum", {}, {x, Symbol::Variable("y", {{"__shape__", "(4, -1)"}})});
  CHECK(net.InferShape({}).outputs[0] == TShape{4, 3});
  // A given shape wins over an attribute.
  CHECK(net.InferShape({{"y", TShape{9, 3}}}).outputs[0] == TShape{9, 3});
  const InferredSpecs specs = InferSpecs(net.graph(), {}, {}, true);
  CHECK(TypeOf(net.graph(), specs, "y") == DType::kFloat64);
  CHECK(MessageOf([&] {
          Symbol::Variable("x", {{"__shape__", "(2, x)"}}).InferShape({});
        }).starts_with("variable 'x': __shape__ = '(2, x)': '(2, x)' is not a shape"));
  CHECK(MessageOf([&] {
          Symbol::Variable("x", {{"__dtype__", "77"}}).InferShape({});
        }).starts_with("variable 'x': __dtype__ = '77'"));
}

TEST_CASE_FIXTURE(TinyNets,
                  "contradictions name the node, its place, the shapes and their sources") {
  const Symbol hidden =
      Op("Activation", "relu", {{"act_type", "relu"}}, {Symbol::Variable("data")}, 12);
  const Symbol net = Op("FullyConnected", "fc1", {{"num_hidden", "10"}}, {hidden}, 14);
  CHECK(MessageOf([&] {
          net.InferShape({{"data", TShape{64, 784}}, {"fc1_weight", TShape{10, 800}}});
        }) ==
        "FullyConnected 'fc1' (net.yaml:14): weight has shape [10, 800], but data [64, 784] needs "
        "[10, 784]; there: data [64, 784] (from "
        "Activation 'relu' (net.yaml:12)), weight [10, 800] ('fc1_weight', given)");
  const Symbol sum = Op("elemwise_add", "sum", {}, {hidden, Symbol::Variable("skip")}, 20);
  CHECK(MessageOf([&] {
          sum.InferShape({{"data", TShape{2, 3}}, {"skip", TShape{2, 4}}});
        }) ==
        "elemwise_add 'sum' (net.yaml:20): rhs has shape [2, 4], but [2, 3] was expected; there: "
        "lhs [2, 3] (from Activation 'relu' "
        "(net.yaml:12)), rhs [2, 4] ('skip', given)");
}

TEST_CASE_FIXTURE(TinyNets, "errors name what stays unknown and what would help") {
  const Symbol net =
      Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {Symbol::Variable("data")}, 3);
  CHECK(MessageOf([&] { InferSpecs(net.graph(), {}, {}, false); }) ==
        "the shape of variable 'data' is not known: FullyConnected 'fc' (net.yaml:3) implies only "
        "?; declare its shape, or pass it when binding");
  const Symbol x = Symbol::Variable("x");
  const Symbol twice =
      Op("elemwise_add", "sum", {}, {Op("Activation", "relu", {{"act_type", "relu"}}, {x}, 4), x});
  CHECK(MessageOf([&] { InferSpecs(twice.graph(), {}, {}, false); }) ==
        "the shape of variable 'x' is not known: Activation 'relu' (net.yaml:4) and other readers "
        "imply only ?; declare its shape, or pass it when binding");
  CHECK(MessageOf([&] {
          InferSpecs(net.graph(), {{"dta", TShape{1, 2}}}, {}, false);
        }).ends_with("(a shape was given for dta, which is not a variable here)"));
  CHECK(MessageOf([&] {
          net.InferShape({{"dta", TShape{1, 2}}});
        }) == "a shape was given for 'dta', but there is no such variable; did you mean 'data'?");
  const Symbol noise = Op("_random_uniform", "noise", {}, {}, 8);
  CHECK(MessageOf([&] {
          InferSpecs(noise.graph(), {}, {}, false);
        }).starts_with("_random_uniform 'noise' (net.yaml:8): the output's shape"));
}

TEST_CASE_FIXTURE(TinyNets, "types: float32 if nothing is known, else that of the neighbours") {
  const Symbol data = Symbol::Variable("data");
  const Symbol bn =
      Op("BatchNorm", "bn", {}, {Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {data})});
  const Symbol net =
      Op("SoftmaxOutput", "softmax", {}, {Op("Cast", "cast", {{"dtype", "float64"}}, {bn})});
  auto types = [&](const std::map<std::string, DType>& known) {
    return InferSpecs(net.graph(), {}, known, true);
  };

  InferredSpecs specs = types({});
  CHECK(TypeOf(net.graph(), specs, "data") == DType::kFloat32);
  CHECK(TypeOf(net.graph(), specs, "softmax_label") == DType::kFloat64);
  specs = types({{"data", DType::kFloat16}});
  CHECK(TypeOf(net.graph(), specs, "fc_weight") == DType::kFloat16);
  CHECK(TypeOf(net.graph(), specs, "bn_gamma") == DType::kFloat32);
  CHECK(TypeOf(net.graph(), specs, "bn_moving_mean") == DType::kFloat32);
  CHECK(TypeOf(net.graph(), specs, "softmax") == DType::kFloat64);
  // Backward.
  CHECK(TypeOf(net.graph(), types({{"fc_weight", DType::kFloat64}}), "data") == DType::kFloat64);
  CHECK(MessageOf([&] {
          types({{"data", DType::kFloat16}, {"fc_bias", DType::kFloat32}});
        }) ==
        "FullyConnected 'fc' takes arrays of one type, but got float16 and float32; insert a Cast; "
        "there: data float16 ('data', "
        "given), "
        "bias float32 ('fc_bias', given)");
}

TEST_CASE_FIXTURE(TinyNets, "copies and reorders keep shape and type, both ways") {
  Graph graph = Op("Activation", "act", {{"act_type", "relu"}}, {Symbol::Variable("x")}).graph();
  Node copy;
  copy.kind = Node::Kind::kCopy;
  copy.name = "copy";
  copy.inputs = {graph.heads[0]};
  graph.nodes.push_back(copy);
  graph.heads = {{static_cast<int>(graph.nodes.size()) - 1, 0}};
  const InferredSpecs specs = InferSpecs(graph, {{"x", TShape{3}}}, {{"x", DType::kUint8}}, false);
  CHECK(specs.shapes.back()[0] == TShape{3});
  CHECK(specs.types.back()[0] == DType::kUint8);
  graph.nodes.back().kind = Node::Kind::kBackward;
  CHECK_THROWS_AS(InferSpecs(graph, {}, {}, true), Error);
}

TEST_CASE_FIXTURE(TinyNets, "a wide node waits until its inputs are stable") {
  // Facts come from the far end of a chain whose links are all read by one node: visiting it after
  // each would be quadratic.
  constexpr int kLength = 10000;
  std::vector<Symbol> links = {Symbol::Variable("x")};
  for (int i = 1; i < kLength; ++i)
    links.push_back(Op("Activation", format("a{}", i), {{"act_type", "relu"}}, {links.back()}));
  const Symbol end = Op("elemwise_add", "end", {}, {links.back(), Symbol::Variable("y")});
  const Symbol net = Symbol::Group(std::vector{Op("Concat", "all", {}, links), end});
  const auto shapes = net.InferShape({{"y", TShape{2, 3}}});
  CHECK(shapes.arguments[0] == TShape{2, 3});
  CHECK(shapes.outputs[0] == TShape{2, 3 * kLength});
}

TEST_CASE_FIXTURE(TinyNets, "an impossible shape is rejected at its node") {
  const Symbol net =
      Op("FullyConnected", "fc", {{"num_hidden", "4194304"}}, {Symbol::Variable("data")}, 7);
  CHECK(MessageOf([&] {
          net.InferShape({{"data", TShape{2, 8388608}}});
        }) ==
        "variable 'fc_weight' (net.yaml:7): shape [4194304, 8388608] has too many elements: an "
        "array holds at most 2^44");
  CHECK(MessageOf([&] {
          net.InferShape({{"data", TShape{int64_t{1} << 62, 8}}});
        }) ==
        "variable 'data': shape [4611686018427387904, 8] has too many elements: an array holds at "
        "most 2^44");
}

}  // namespace mxtrain
