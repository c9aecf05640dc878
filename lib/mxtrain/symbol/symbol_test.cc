// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/symbol.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "tests/support/error_message.h"
#include "tests/support/tiny_operators.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::MessageOf;
using test::Strings;

const OperatorRegistry& Tiny() {
  static const OperatorRegistry* registry = [] {
    auto* r = new OperatorRegistry;
    test::AddTinyOperators(*r);
    return r;
  }();
  return *registry;
}

Symbol Op(const char* op, const std::string& name, const Kwargs& kwargs,
          const std::vector<Symbol>& inputs, const std::map<std::string, Symbol>& named = {},
          const Attrs& attrs = {}, const std::string& where = "") {
  return Symbol::Create(Tiny(), op, name, kwargs, inputs, named, attrs, where);
}

Symbol Mlp() {
  const Symbol data = Symbol::Variable("data");
  const Symbol fc1 = Op("FullyConnected", "fc1", {{"num_hidden", "8"}}, {data});
  const Symbol relu = Op("Activation", "relu1", {{"act_type", "relu"}}, {fc1});
  const Symbol bn = Op("BatchNorm", "bn1", {}, {relu});
  return Op("SoftmaxOutput", "softmax", {},
            {Op("FullyConnected", "fc2", {{"num_hidden", "3"}}, {bn})});
}

}  // namespace

TEST_CASE("lists follow depth-first post-order, auxiliaries apart") {
  const Symbol net = Mlp();
  CHECK(net.ListArguments() == Strings{"data", "fc1_weight", "fc1_bias", "bn1_gamma", "bn1_beta",
                                       "fc2_weight", "fc2_bias", "softmax_label"});
  CHECK(net.ListAuxiliaryStates() == Strings{"bn1_moving_mean", "bn1_moving_var"});
  CHECK(net.ListOutputs() == Strings{"softmax_output"});
  CHECK(net.Name() == "softmax");
  CHECK(net.GetInternals().ListOutputs() ==
        Strings{"data", "fc1_weight", "fc1_bias", "fc1_output", "relu1_output", "bn1_gamma",
                "bn1_beta", "bn1_output", "fc2_weight", "fc2_bias", "fc2_output", "softmax_label",
                "softmax_output"});
  CHECK(Symbol().ListArguments().empty());
  CHECK(Symbol().NumOutputs() == 0);
}

TEST_CASE("hidden outputs cannot be composed on, visible ones can be chosen") {
  const Symbol internals = Mlp().GetInternals();
  CHECK(internals["bn1_output"].ListOutputs() == Strings{"bn1_output"});
  CHECK(MessageOf([&] { internals["bn1_mean"]; }).starts_with("there is no output 'bn1_mean'"));
  const Symbol parts = Op("SliceChannel", "cut", {{"num_outputs", "3"}}, {Symbol::Variable("x")});
  CHECK(parts.NumOutputs() == 3);
  CHECK(parts.ListOutputs() == Strings{"cut_output0", "cut_output1", "cut_output2"});
  CHECK(parts[2].ListOutputs() == Strings{"cut_output2"});
  CHECK_THROWS_AS(parts[3], Error);
  CHECK_THROWS_AS(parts[-1], Error);
  // A symbol with several outputs fills as many inputs.
  const Symbol joined = Op("Concat", "joined", {}, {parts, Symbol::Variable("y")});
  CHECK(joined.graph().nodes.back().op->ListArguments() == Strings{"arg0", "arg1", "arg2", "arg3"});
  CHECK(joined.graph().nodes.back().op->GetParams()[0].second == "4");
}

TEST_CASE("variadic operators: the count comes from the inputs, or must match them") {
  const std::vector<Symbol> two = {Symbol::Variable("a"), Symbol::Variable("b")};
  CHECK(Op("Concat", "c", {{"num_args", "3"}}, two).ListArguments() == Strings{"a", "b", "c_arg2"});
  CHECK(MessageOf([&] {
          Op("Concat", "c", {{"num_args", "1"}}, two);
        }) == "Concat 'c' takes 1 inputs (arg0), but got 2");
  CHECK(Op("Concat", "c", {}, {two[0]}, {{"arg1", two[1]}}).ListArguments() == Strings{"a", "b"});
  CHECK_THROWS_AS(Op("Concat", "c", {}, {}), Error);
}

TEST_CASE("generated names: operator in lower case, the least counter free among the inputs") {
  Symbol x = Symbol::Variable("data");
  for (int i = 0; i < 3; ++i) x = Op("Activation", "", {{"act_type", "tanh"}}, {x});
  CHECK(x.Name() == "activation2");
  CHECK(Op("FullyConnected", "", {{"num_hidden", "1"}}, {x}).ListArguments() ==
        Strings{"data", "fullyconnected0_weight", "fullyconnected0_bias"});
  CHECK(Op("_Plus", "", {}, {x, x}).Name() == "_plus0");
  CHECK(Op("Activation", "", {{"act_type", "tanh"}}, {Symbol::Variable("activation0")}).Name() ==
        "activation1");
}

TEST_CASE("names are unique; errors name both nodes and their places") {
  const Symbol data = Symbol::Variable("data");
  const Symbol a = Op("Activation", "act", {{"act_type", "relu"}}, {data}, {}, {}, "net.yaml:3");
  const Symbol b = Op("Activation", "act", {{"act_type", "tanh"}}, {data}, {}, {}, "net.yaml:9");
  const std::string message = MessageOf([&] { Op("elemwise_add", "sum", {}, {a, b}); });
  CHECK(message ==
        "two nodes have the name 'act': Activation 'act' (net.yaml:3) and Activation 'act' "
        "(net.yaml:9); give one of them another name, or "
        "use one symbol in both places");
  CHECK_THROWS_AS(Symbol::Group(std::vector{a, b}), Error);
  CHECK_THROWS_AS(Op("Activation", "data", {{"act_type", "relu"}}, {data}), Error);
  CHECK_THROWS_AS(
      Op("FullyConnected", "fc", {{"num_hidden", "2"}}, {Symbol::Variable("fc_weight")}), Error);
  CHECK_THROWS_AS(Op("elemwise_add", "sum", {}, {data, Symbol::Variable("data")}), Error);
  CHECK_NOTHROW(Op("elemwise_add", "sum", {}, {data, data}));
  CHECK_THROWS_AS(Symbol::Variable(""), Error);
}

TEST_CASE("errors of Create name the node and the nearest name") {
  const Symbol x = Symbol::Variable("x");
  CHECK(
      MessageOf([&] { Op("Activatoin", "a", {}, {x}, {}, {}, "net.yaml:5"); }) ==
      "Activatoin 'a' (net.yaml:5): there is no operator 'Activatoin'; did you mean 'Activation'?");
  CHECK(
      MessageOf([&] {
        Op("FullyConnected", "fc", {{"num_hiden", "3"}}, {x}, {}, {}, "net.yaml:5");
      }) ==
      "FullyConnected 'fc' (net.yaml:5) has no parameter 'num_hiden'; did you mean 'num_hidden'?");
  CHECK(MessageOf([&] {
          Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {x}, {{"wieght", x}});
        }) == "FullyConnected 'fc' has no input 'wieght'; did you mean 'weight'?");
  CHECK(MessageOf([&] {
          Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {x}, {{"data", x}});
        }) ==
        "FullyConnected 'fc': the input 'data' is given twice: by position (variable 'x') and by "
        "name (variable 'x')");
  CHECK_THROWS_AS(Op("Activation", "a", {{"act_type", "relu"}}, {x, x}), Error);
  CHECK_THROWS_AS(Op("Activation", "a", {{"act_type", "relu"}}, {}, {{"data", Symbol()}}), Error);
  CHECK_THROWS_AS(Mlp().GetInternals()["fc1_ouput"], Error);
}

TEST_CASE("operators created by fusion are not for symbols") {
  OperatorRegistry registry;
  test::AddTinyOperators(registry);
  FusePattern pattern;
  pattern.chain = {"BatchNorm", "Activation"};
  pattern.into = "_minus_scalar";
  registry.AddPattern(pattern);
  const std::vector<Symbol> x = {Symbol::Variable("x")};
  CHECK(MessageOf([&] { Symbol::Create(registry, "_minus_scalar", "m", {}, x); }) ==
        "_minus_scalar 'm' is created by the executor from BatchNorm and Activation; use those");
  CHECK_NOTHROW(Symbol::Create(registry, "_rminus_scalar", "m", {}, x));
}

TEST_CASE(
    "attributes: bare and hidden spelling are one, missing inputs inherit, input keys go to their "
    "input") {
  const Symbol x = Symbol::Variable("x", {{"__lr_mult__", "2"}, {"__shape__", "(2, 3)"}});
  CHECK(x.Attr("lr_mult") == "2");
  CHECK(x.Attr("__lr_mult__") == "2");
  CHECK(x.Attr("wd_mult") == "");
  const Symbol fc =
      Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {x}, {},
         {{"lr_mult", "0"}, {"__wd_mult__", "1"}, {"bias_lr_mult", "5"}, {"__shape__", "(1,)"}});
  const auto attrs = fc.ListAttrs();
  CHECK(attrs.at("fc") == Attrs{{"lr_mult", "0"}, {"wd_mult", "1"}, {"__shape__", "(1,)"}});
  CHECK(attrs.at("fc_weight") == Attrs{{"lr_mult", "0"}, {"wd_mult", "1"}});
  CHECK(attrs.at("fc_bias") == Attrs{{"lr_mult", "5"}, {"wd_mult", "1"}});
  CHECK(attrs.at("x").at("lr_mult") == "2");
  CHECK(MessageOf([&] {
          Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {x}, {}, {{"data_lr_mult", "1"}});
        }) ==
        "FullyConnected 'fc': the attribute 'data_lr_mult' is for a new variable, but variable 'x' "
        "was given; set lr_mult there");
  CHECK_THROWS_AS(
      Op("FullyConnected", "fc", {{"num_hidden", "3"}}, {x}, {}, {{"wait_lr_mult", "1"}}), Error);
  // A value: the changed one is new, the old one is unchanged.
  const Symbol changed = fc.WithAttr("__ctx_group__", "stage1");
  CHECK(changed.Attr("ctx_group") == "stage1");
  CHECK(fc.Attr("ctx_group") == "");
  CHECK(changed.ListArguments() == fc.ListArguments());
  CHECK_THROWS_AS(Symbol::Group(std::vector{fc, x}).Attr("lr_mult"), Error);
  const Symbol prelu = Op("LeakyReLU", "p", {{"act_type", "prelu"}}, {x});
  CHECK(prelu.ListAttrs().at("p_gamma").at("__init__") == R"(["constant", {"value": 0.25}])");
}

TEST_CASE("a variable may be shared, as argument or as auxiliary state, never as both") {
  const Symbol mean = Symbol::Variable("mean"), x = Symbol::Variable("x");
  const Symbol a = Op("BatchNorm", "a", {}, {x}, {{"moving_mean", mean}});
  const Symbol b = Op("BatchNorm", "b", {}, {a}, {{"moving_mean", mean}});
  CHECK(b.ListAuxiliaryStates() == Strings{"mean", "a_moving_var", "b_moving_var"});
  CHECK(b.ListArguments() == Strings{"x", "a_gamma", "a_beta", "b_gamma", "b_beta"});
  CHECK(MessageOf([&] {
          Op("elemwise_add", "sum", {}, {b, mean});
        }) ==
        "'mean' is an auxiliary state of BatchNorm 'a' and an argument of elemwise_add 'sum'; it "
        "can only be one of them");
  CHECK_THROWS_AS(Op("BatchNorm", "c", {}, {x}, {{"moving_mean", a}}), Error);
}

TEST_CASE("Compose replaces variables and shares what does not change") {
  const Symbol net = Mlp();
  const Symbol front =
      Op("FullyConnected", "fc0", {{"num_hidden", "8"}}, {Symbol::Variable("pixels")});
  const Symbol whole = net.Compose({{"data", front}});
  CHECK(whole.ListArguments() == Strings{"pixels", "fc0_weight", "fc0_bias", "fc1_weight",
                                         "fc1_bias", "bn1_gamma", "bn1_beta", "fc2_weight",
                                         "fc2_bias", "softmax_label"});
  CHECK(whole.ListAuxiliaryStates() == net.ListAuxiliaryStates());
  CHECK(net.ListArguments()[0] == "data");
  CHECK(MessageOf([&] {
          net.Compose({{"dta", front}});
        }) == "there is no variable 'dta' to replace; did you mean 'data'?");
  CHECK_THROWS_AS(net.Compose({{"data", Symbol::Group(std::vector{front, Symbol::Variable("z")})}}),
                  Error);
  // An auxiliary state must stay a variable.
  CHECK_THROWS_AS(net.Compose({{"bn1_moving_mean", front}}), Error);
  CHECK(net.Compose({{"bn1_moving_mean", Symbol::Variable("m")}}).ListAuxiliaryStates() ==
        Strings{"m", "bn1_moving_var"});
  const Symbol data = Symbol::Variable("data");
  CHECK(data.Compose({{"data", front}}).Name() == "fc0");
  // Outputs keep their index when their node is rebuilt.
  const Symbol cut = Op("SliceChannel", "cut", {{"num_outputs", "2"}}, {data});
  CHECK(cut[1].Compose({{"data", front}}).ListOutputs() == Strings{"cut_output1"});
  // The replacement may itself have a variable of the replaced name.
  CHECK(net.Compose({{"data", Op("Activation", "pre", {{"act_type", "tanh"}}, {data})}})
            .ListArguments()[0] == "data");
}

namespace {

// Naive recursion over a laid-out graph, as an independent reference.
void Recurse(const Graph& graph, int id, std::set<int>* seen, std::vector<int>* order) {
  if (!seen->insert(id).second) return;
  for (const NodeEntry& input : graph.nodes[static_cast<size_t>(id)].inputs)
    Recurse(graph, input.node, seen, order);
  order->push_back(id);
}

Symbol RandomNet(std::mt19937* random, int operators) {
  std::vector<Symbol> pool = {Symbol::Variable("v0"), Symbol::Variable("v1")};
  auto pick = [&] {
    const Symbol& chosen = pool[(*random)() % pool.size()];
    return chosen[static_cast<int>((*random)() % static_cast<unsigned>(chosen.NumOutputs()))];
  };
  for (int i = 0; i < operators; ++i) {
    const std::string name = "n" + std::to_string(i);
    switch ((*random)() % 6) {
      case 0:
        pool.push_back(Op("FullyConnected", name,
                          {{"num_hidden", "4"}, {"no_bias", (*random)() % 2 ? "True" : "False"}},
                          {pick()}));
        break;
      case 1:
        pool.push_back(Op("BatchNorm", name, {{"eps", "2e-5"}}, {pick()}));
        break;
      case 2:
        pool.push_back(Op("elemwise_add", name, {}, {pick(), pick()}));
        break;
      case 3:
        pool.push_back(
            Op("SliceChannel", name, {{"num_outputs", "2"}}, {pick()}, {}, {{"ctx_group", "g"}}));
        break;
      case 4:
        pool.push_back(Op("Concat", name, {{"dim", "0"}}, {pick(), pick(), pick()}));
        break;
      default:
        pool.push_back(
            Op("LeakyReLU", name, {{"act_type", "prelu"}}, {pick()}, {}, {{"lr_mult", "0.5"}}));
        break;
    }
  }
  return (*random)() % 2 ? pool.back() : Symbol::Group(std::vector{pool.back(), pick(), pick()});
}

}  // namespace

TEST_CASE("orders and lists agree with naive recursion on random graphs; files are a fixed point") {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    const Symbol net = RandomNet(&random, 1 + static_cast<int>(random() % 25));
    const Graph& graph = net.graph();
    std::set<int> seen;
    std::vector<int> order;
    for (const NodeEntry& head : graph.heads) Recurse(graph, head.node, &seen, &order);
    REQUIRE(order.size() == graph.nodes.size());
    CHECK(std::is_sorted(order.begin(), order.end()));  // the layout is the order of recursion
    std::set<std::string> auxiliary;
    for (const Node& node : graph.nodes) {
      for (size_t i = static_cast<size_t>(node.num_args); node.op && i < node.inputs.size(); ++i) {
        auxiliary.insert(graph.nodes[static_cast<size_t>(node.inputs[i].node)].name);
      }
    }
    Strings arguments, auxiliaries;
    for (int id : order) {
      const Node& node = graph.nodes[static_cast<size_t>(id)];
      if (!node.op) (auxiliary.contains(node.name) ? auxiliaries : arguments).push_back(node.name);
    }
    CHECK(net.ListArguments() == arguments);
    CHECK(net.ListAuxiliaryStates() == auxiliaries);

    const std::string json = net.ToJson();
    const Symbol read = Symbol::FromJson(Tiny(), json);
    CHECK(read.ToJson() == json);
    CHECK(read.ListArguments() == arguments);
    CHECK(read.ListAuxiliaryStates() == auxiliaries);
    CHECK(read.ListOutputs() == net.ListOutputs());
    CHECK(read.ListAttrs() == net.ListAttrs());
  }
}

TEST_CASE("a chain of 10^5 nodes: laid out, written, read, released, without recursion") {
  std::string nodes = R"({"op": "null", "name": "x", "inputs": []})";
  constexpr int kLength = 100000;
  for (int i = 1; i <= kLength; ++i) {
    nodes += format(
        R"(, {{"op": "Activation", "name": "a{}", "attrs": {{"act_type": "relu"}}, "inputs": [[{}, 0, 0]]}})",
        i, i - 1);
  }
  const Symbol net = Symbol::FromJson(
      Tiny(),
      format(
          R"({{"nodes": [{}], "heads": [[{}, 0, 0]], "attrs": {{"mxnet_version": ["int", 10901]}}}})",
          nodes, kLength));
  CHECK(net.graph().nodes.size() == kLength + 1);
  CHECK(net.ListArguments() == Strings{"x"});
  const auto shapes = net.InferShape({{"x", TShape{2, 3}}});
  CHECK(shapes.outputs[0] == TShape{2, 3});
  // Facts may also come from the far end.
  const Symbol reached =
      Op("elemwise_add", "end", {}, {net, Symbol::Variable("y", {{"__shape__", "(4, 5)"}})});
  CHECK(reached.InferShape({}).arguments[0] == TShape{4, 5});
  CHECK(net.Compose({{"x", Symbol::Variable("z")}}).ListArguments() == Strings{"z"});
  CHECK(net.ToJson().size() > kLength * 50);
}

TEST_CASE("10^4 layers: each costs the same, however the net branches and without user names") {
  constexpr int kBlocks = 5000;
  Symbol net = Symbol::Variable("data");
  std::vector<Symbol> kept;  // coexisting versions of one scope
  for (int i = 0; i < kBlocks; ++i) {
    const Symbol branch = Op("FullyConnected", "", {{"num_hidden", "8"}}, {net});
    net = Op("elemwise_add", "", {}, {i % 2 ? branch : net, i % 2 ? net : branch});
    kept.push_back(net);
  }
  CHECK(net.Name() == "elemwise_add4999");
  CHECK(net.ListArguments().size() == 2 * kBlocks + 1);
  CHECK(Symbol::Group(kept).NumOutputs() == kBlocks);
  CHECK(Op("Concat", "all", {}, kept).ListArguments().size() == 2 * kBlocks + 1);
  CHECK(Op("Activation", "elemwise_add17", {{"act_type", "relu"}}, {net})
            .GetInternals()["elemwise_add5000_output"]
            .NumOutputs() == 1);

  std::map<std::string, TShape> known;
  const auto shapes = net.InferShape({{"data", TShape{4, 8}}});
  const Strings names = net.ListArguments();
  for (size_t i = 0; i < names.size(); ++i) known[names[i]] = shapes.arguments[i];
  CHECK(net.InferShape(known).complete);
}

// Compared with sets of names: two symbols may be joined if no name that the user gave refers to
// two nodes. Generated names give way.
TEST_CASE(
    "names clash exactly if two nodes that the user gave one name become reachable together") {
  using Reach = std::map<std::string, int>;  // given name -> number of the node
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&random](size_t n) { return static_cast<size_t>(random() % n); };
    std::vector<Symbol> symbols;
    std::vector<Reach> reaches;
    std::vector<std::set<int>> unnamed;  // numbers of the nodes without a given name
    int nodes = 0, clashes = 0, renamed = 0;
    for (int i = 0; i < 4; ++i) {
      const std::string name = format("v{}", i % 3);
      symbols.push_back(Symbol::Variable(name));
      reaches.push_back({{name, nodes++}});
      unnamed.emplace_back();
    }
    for (int i = 0; i < 120; ++i) {
      const size_t a = pick(symbols.size()), b = pick(symbols.size());
      Reach reach = reaches[a];
      bool clash = false;
      for (const auto& [name, node] : reaches[b])
        clash |= !reach.try_emplace(name, node).second && reach.at(name) != node;
      std::set<int> without = unnamed[a];
      without.insert(unnamed[b].begin(), unnamed[b].end());
      const std::string name = pick(3)   ? format("n{}", pick(40))
                               : pick(4) ? ""
                                         : format("elemwise_add{}", pick(6));
      if (name.empty()) {
        without.insert(nodes++);
      } else {
        clash |= !reach.try_emplace(name, nodes++).second;
      }
      try {
        const Symbol sum = Op("elemwise_add", name, {}, {symbols[a], symbols[b]});
        REQUIRE_FALSE(clash);
        if (!name.empty()) REQUIRE(sum.Name() == name);
        std::set<std::string> names;
        for (const Node& node : sum.graph().nodes) names.insert(node.name);
        REQUIRE(names.size() == sum.graph().nodes.size());
        REQUIRE(names.size() == reach.size() + without.size());
        for (const auto& [given, node] : reach) REQUIRE(names.contains(given));
        for (size_t k = 0; k < without.size() + reach.size(); ++k)
          renamed += names.contains(format("elemwise_add{}", k));
        REQUIRE(sum.Name() == sum.graph().nodes.back().name);
        symbols.push_back(sum);
        reaches.push_back(reach);
        unnamed.push_back(without);
      } catch (const Error& error) {
        REQUIRE(clash);
        REQUIRE(std::string(error.what()).starts_with("two nodes have the name"));
        ++clashes;
      }
    }
    CHECK(clashes > 0);
    CHECK(renamed > 0);
    CHECK(symbols.size() > 20);
  }
}

TEST_CASE("two unnamed layers of one input keep apart when they are joined") {
  const Symbol data = Symbol::Variable("data");
  const auto layer = [&](const Symbol& in) {
    return Op("FullyConnected", "", {{"num_hidden", "8"}}, {in});
  };
  const Symbol a = layer(data), b = layer(data);
  CHECK(a.Name() == "fullyconnected0");
  CHECK(b.Name() == "fullyconnected0");
  const Strings both = {"data", "fullyconnected0_weight", "fullyconnected0_bias",
                        "fullyconnected1_weight", "fullyconnected1_bias"};
  const Symbol sum = Op("elemwise_add", "", {}, {a, b});
  CHECK(sum.ListArguments() == both);
  CHECK(Symbol::Group(std::vector{a, b}).ListArguments() == both);
  CHECK(Symbol::Group(std::vector{a, b}).ListOutputs() ==
        Strings{"fullyconnected0_output", "fullyconnected1_output"});
  // One node is one node, whatever it is called.
  CHECK(Symbol::Group(std::vector{sum, b, a}).ListArguments() == both);
  CHECK(Symbol::Group(std::vector{b, sum}).ListArguments().size() == 5);
  CHECK(sum.GetInternals()["fullyconnected1_output"].ListArguments() ==
        Strings{"data", "fullyconnected0_weight", "fullyconnected0_bias"});
  // What follows counts on, and shapes are found by the names of the symbol.
  const Symbol next = layer(sum);
  CHECK(next.Name() == "fullyconnected1");
  CHECK(next.ListArguments().size() == 7);
  const auto shapes = sum.InferShape({{"data", TShape{4, 8}}, {"fullyconnected1_bias", TShape{8}}});
  CHECK(shapes.complete);
  // Inputs of their own, and names that the user gives.
  CHECK(Op("elemwise_add", "", {}, {layer(Symbol::Variable("x")), layer(Symbol::Variable("y"))})
            .ListArguments()
            .size() == 6);
  const Symbol given = Op("FullyConnected", "fullyconnected0", {{"num_hidden", "8"}}, {data});
  CHECK(Op("elemwise_add", "", {}, {a, given}).ListArguments() ==
        Strings{"data", "fullyconnected1_weight", "fullyconnected1_bias", "fullyconnected0_weight",
                "fullyconnected0_bias"});
  CHECK(Symbol::FromJson(Tiny(), sum.ToJson()).ListArguments() == both);
}

TEST_CASE("an unnamed net composed twice shares its parameters") {
  const Symbol net = Op("FullyConnected", "", {{"num_hidden", "8"}}, {Symbol::Variable("data")});
  const Symbol left = net.Compose({{"data", Symbol::Variable("l")}}),
               right = net.Compose({{"data", Symbol::Variable("r")}});
  const Symbol twins = Symbol::Group(std::vector{left, right});
  CHECK(twins.ListArguments() ==
        Strings{"l", "fullyconnected0_weight", "fullyconnected0_bias", "r"});
  CHECK(twins.ListOutputs() == Strings{"fullyconnected0_output", "fullyconnected1_output"});
}

TEST_CASE("a symbol is laid out once, by whichever thread asks first") {
  const Symbol net = Mlp();
  std::vector<const Graph*> graphs(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < graphs.size(); ++i)
    threads.emplace_back([&, i] { graphs[i] = &net.graph(); });
  for (std::thread& thread : threads) thread.join();
  for (const Graph* graph : graphs) CHECK(graph == graphs[0]);
}

}  // namespace mxtrain
