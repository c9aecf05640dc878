// SPDX-License-Identifier: Apache-2.0
// Chains with repeated arguments, reductions of rows and Dropout against their parts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;

std::vector<std::string> ChainsOf(const Executor& executor) {
  std::vector<std::string> chains;
  for (const auto& node : executor.graph().nodes) {
    if (node.kind == Node::Kind::kForward && node.op->TypeString() == "_ElementwiseChain")
      chains.push_back(format("{}", join(node.origins, "+")));
  }
  return chains;
}

// Largest distance of two elements, over the largest element of its array, or over 1/20 of the
// largest of all.
double LargestDistance(const Result& got, const Result& expected) {
  REQUIRE(got.size() == expected.size());
  const auto largest_of = [](const std::vector<double>& values) {
    double most = 0;
    for (double value : values) most = std::max(most, std::abs(value));
    return most;
  };
  double largest = 0, worst = 0;
  for (const auto& [name, values] : expected) largest = std::max(largest, largest_of(values));
  for (const auto& [name, values] : expected) {
    const std::vector<double>& others = got.at(name);
    double distance = 0;
    for (size_t i = 0; i < values.size(); ++i)
      distance = std::max(distance, std::abs(others[i] - values[i]));
    worst = std::max(worst, distance / std::max(largest_of(values), largest / 20));
  }
  return worst;
}

struct Outcome {
  Result result;
  int64_t arena_bytes = 0;
  int64_t room = 0;        // bytes of the largest workspace of a chain
  int64_t kept_bytes = 0;  // of arrays of the forward pass that the backward pass reads
  std::vector<std::string> chains;
};
Outcome RunNet(Runtime& runtime, const SmallNet& net, BindRequest request) {
  const auto executor = BindWithValues(runtime, net.losses, request);
  const auto inputs = MakeInputs(runtime, net, executor->input_names());
  executor->graph().first_backward >= 0 ? executor->Step(inputs) : executor->Forward(inputs);
  int64_t room = 0, kept = 0;
  std::set<NodeEntry> read;
  for (const auto& node : executor->graph().nodes) {
    for (const NodeEntry& e : node.inputs) {
      if (!e || !node.backward_pass) continue;
      const auto& source = executor->graph().nodes[e.node];
      if (source.kind == Node::Kind::kForward && !source.backward_pass && read.insert(e).second)
        kept += executor->graph().spec(e).Bytes();
    }
  }
  for (const auto& node : executor->graph().nodes) {
    if (node.plan && node.op->TypeString() == "_ElementwiseChain")
      room = std::max({room, node.plan->forward_workspace, node.plan->backward_workspace});
  }
  return {ResultOf(*executor), executor->arena_bytes(), room, kept, ChainsOf(*executor)};
}

// Operators on arrays [rows, width], on one that is repeated along the rows and one along the
// columns, with reductions of rows, softmax, Dropout and DropPath; results are read once or several
// times.
Symbol RandomRows(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int number = 0;
  const auto layer = [&](const std::string& op, const std::vector<Symbol>& inputs,
                         const Kwargs& kwargs = {}) {
    return Layer(op, format("{}{}", op, number++), inputs, kwargs);
  };
  const Symbol row = Symbol::Variable("row_weight"), column = Symbol::Variable("column_weight");
  std::vector<Symbol> values{Symbol::Variable("data"), Symbol::Variable("whole_weight")};
  const Kwargs along_rows{{"axis", "-1"}, {"keepdims", "1"}};
  for (size_t n = 4 + below(9); n-- > 0;) {
    const Symbol x = values[values.size() - 1 - below(std::min<size_t>(values.size(), 2))];
    switch (below(10)) {
      case 0:
        values.push_back(layer("broadcast_add", {x, row}));
        break;
      case 1:
        values.push_back(layer("broadcast_mul", {column, x}));
        break;
      case 2:
        values.push_back(layer("broadcast_sub", {x, layer("mean", {x}, along_rows)}));
        break;
      case 3: {
        const Symbol squares = layer("mean", {layer("square", {x})}, along_rows);
        const Symbol root = layer("sqrt", {layer("_plus_scalar", {squares}, {{"scalar", "0.1"}})});
        values.push_back(layer("broadcast_div", {x, root}));
        break;
      }
      case 4: {
        const Symbol shifted = layer("broadcast_sub", {x, layer("max", {x}, along_rows)});
        values.push_back(layer("exp", {shifted}));
        break;
      }
      case 5:
        values.push_back(
            layer("_mul_scalar", {layer("softmax", {x}, {{"axis", "-1"}})}, {{"scalar", "20"}}));
        break;
      case 6:
        values.push_back(layer("Dropout", {x}, {{"p", "0.25"}}));
        break;
      case 7:
        values.push_back(layer("DropPath", {x}, {{"p", "0.25"}}));
        break;
      case 8:
        values.push_back(layer("gelu", {x}));
        break;
      default:
        values.push_back(layer("elemwise_add", {x, values[below(values.size())]}));
    }
  }
  return layer("MakeLoss", {layer("tanh", {values.back()})});
}

TEST_CASE(
    "chains over rows give the losses and gradients of their parts, and keep no more for them") {
  const auto runtime = NewRuntime();
  unsigned fused = 0, with_rows = 0, with_draws = 0;
  const unsigned nets = 3 * NumRandomNets(60);
  for (unsigned seed = 0; seed < nets; ++seed) {
    CAPTURE(seed);
    const Symbol loss = RandomRows(seed);
    const int64_t rows = seed % 2 ? 130 : 5, width = seed % 3 ? 129 : 700;
    for (bool training : {true, false}) {
      const SmallNet net{"rows", loss, loss, {{"data", {rows, width}}}, {}, 0};
      BindRequest request = RequestFor(net, loss);
      for (const std::string& name : loss.ListArguments()) {
        request.shapes[name] = {name == "row_weight" ? 1 : rows,
                                name == "column_weight" ? 1 : width};
      }
      request.is_train = training;
      if (!training) request.grad_req.clear();
      Outcome outcomes[2];
      for (bool fuse : {false, true}) {
        request.fuse = fuse;
        outcomes[fuse] = RunNet(*runtime, net, request);
      }
      CHECK(LargestDistance(outcomes[true].result, outcomes[false].result) <= 2e-5);
      CHECK(outcomes[true].kept_bytes <= outcomes[false].kept_bytes);
      // The gradients of two arguments may be there while the result is.
      CHECK(outcomes[true].arena_bytes <=
            outcomes[false].arena_bytes + outcomes[true].room + rows * width * 4 + 64);
      CHECK(outcomes[false].chains.empty());
      for (const std::string& chain : outcomes[true].chains) {
        fused += training;
        with_rows += chain.find("mean") != std::string::npos;
        with_draws += training && chain.find("Drop") != std::string::npos;
      }
    }
  }
  if (nets >= 180) {
    CHECK(fused >= 40);
    CHECK(with_rows >= 10);
    CHECK(with_draws >= 30);
  }
}

// x, a layer that scales its channels, and the sum of both, with Dropout.
SmallNet Residuals() {
  const Symbol data = Symbol::Variable("data");
  const auto conv = [](const std::string& name, const Symbol& x) {
    return Layer("Convolution", name, {x},
                 {{"kernel", "(3, 3)"}, {"num_filter", "16"}, {"pad", "(1, 1)"}});
  };
  Symbol x = conv("stem", data);
  for (const char* unit : {"u", "v"}) {
    const std::string name = unit;
    const Symbol scale = Symbol::Variable(name + "_scale_weight");
    const Symbol scaled =
        Layer("broadcast_mul", name + "_scaled", {conv(name + "_conv", x), scale});
    x = Layer("elemwise_add", name + "_sum",
              {Layer("Dropout", name + "_drop", {scaled}, {{"p", "0.4"}}), x});
  }
  const Symbol last = conv("last", x);
  return {"residuals", Layer("MakeLoss", "loss", {Layer("square", "square", {last})}),
          last,        {{"data", {12, 3, 20, 21}}},
          {},          0};
}
BindRequest RequestForResiduals(const SmallNet& net) {
  BindRequest request = RequestFor(net, net.losses);
  for (const char* unit : {"u", "v"})
    request.shapes[format("{}_scale_weight", unit)] = {1, 16, 1, 1};
  return request;
}

TEST_CASE("a scale of channels, Dropout and a sum are one operator") {
  const auto runtime = NewRuntime();
  const SmallNet net = Residuals();
  BindRequest request = RequestForResiduals(net);
  Outcome outcomes[2];
  for (bool fuse : {false, true}) {
    request.fuse = fuse;
    outcomes[fuse] = RunNet(*runtime, net, request);
  }
  CHECK(outcomes[true].chains ==
        std::vector<std::string>{"u_scaled+u_drop+u_sum", "v_scaled+v_drop+v_sum"});
  CHECK(LargestDistance(outcomes[true].result, outcomes[false].result) <= 1e-5);
  CHECK(outcomes[true].arena_bytes <= outcomes[false].arena_bytes + outcomes[true].room);
}

TEST_CASE("a Dropout in a chain is the identity in evaluation") {
  const auto runtime = NewRuntime();
  const SmallNet net = Residuals();
  BindRequest request = RequestForResiduals(net);
  request.is_train = false;
  request.grad_req.clear();
  Outcome outcomes[2];
  for (bool fuse : {false, true}) {
    request.fuse = fuse;
    outcomes[fuse] = RunNet(*runtime, net, request);
  }
  CHECK(outcomes[true].chains == std::vector<std::string>{"u_drop+u_sum", "v_drop+v_sum"});
  CHECK(outcomes[true].result == outcomes[false].result);
}

// Large enough for several threads and several slices of sums.
TEST_CASE("chains over rows give the same bits on any number of threads") {
  const Symbol data = Symbol::Variable("data"), scale = Symbol::Variable("scale_weight"),
               bias = Symbol::Variable("bias_weight");
  const Kwargs along_rows{{"axis", "-1"}, {"keepdims", "1"}};
  const Symbol squares = Layer("mean", "mean", {Layer("square", "squares", {data})}, along_rows);
  const Symbol root =
      Layer("rsqrt", "root", {Layer("_plus_scalar", "safe", {squares}, {{"scalar", "1e-5"}})});
  const Symbol normal = Layer("broadcast_mul", "normal", {data, root});
  const Symbol scaled = Layer("broadcast_mul", "scaled", {normal, scale});
  const Symbol y = Layer("broadcast_add", "y", {scaled, bias});
  const Symbol loss =
      Layer("MakeLoss", "loss", {Layer("gelu", "gelu", {Layer("Dropout", "drop", {y})})});
  const SmallNet net{"rms", loss, loss, {{"data", {700, 131}}}, {}, 0};
  BindRequest request = RequestFor(net, loss);
  request.shapes["scale_weight"] = request.shapes["bias_weight"] = {1, 131};
  Result expected;
  for (int threads : {1, 2, 3, 7}) {
    const auto runtime = NewRuntime("threaded", threads);
    const Outcome outcome = RunNet(*runtime, net, request);
    CHECK(outcome.chains ==
          std::vector<std::string>{"squares+mean+safe+root+normal+scaled+y+drop+gelu"});
    if (threads == 1) expected = outcome.result;
    CHECK(outcome.result == expected);
  }
}

struct Arenas {
  int64_t apart = 0, fused = 0, room = 0;
  std::vector<std::string> chains;
};
Arenas ArenasOf(const Symbol& symbol, const TShape& data, bool training) {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net{"net", symbol, symbol, {{"data", data}}, {}, 0};
  BindRequest request = RequestFor(net, symbol);
  request.is_train = training;
  if (!training) request.grad_req.clear();
  Arenas arenas;
  for (bool fuse : {false, true}) {
    request.fuse = fuse;
    const Outcome outcome = RunNet(*runtime, net, request);
    (fuse ? arenas.fused : arenas.apart) = outcome.arena_bytes;
    if (fuse) arenas.room = outcome.room, arenas.chains = outcome.chains;
  }
  return arenas;
}

// A member takes the results of branches one by one; the chain would hold all of them.
TEST_CASE("a chain does not hold the results of branches for the last of them") {
  const Symbol data = Symbol::Variable("data");
  Symbol sum = Layer("clip", "clip", {Dense("a", data, 1024)}, {{"a_min", "-1"}, {"a_max", "1"}});
  for (const char* name : {"b", "c", "d"}) {
    sum = Layer("elemwise_add", format("{}_sum", name), {sum, Dense(name, data, 1024)});
  }
  for (const bool training : {false, true}) {
    const Arenas arenas = ArenasOf(Layer("MakeLoss", "loss", {Layer("square", "square", {sum})}),
                                   {256, 64}, training);
    CHECK(arenas.fused <= arenas.apart + arenas.room);
  }
}

// The mean of rows is shorter than they are.
TEST_CASE("a chain does not hold the argument of a reduction for one that is computed later") {
  const Symbol data = Symbol::Variable("data");
  const Symbol mean =
      Layer("mean", "mean", {Dense("a", data, 1024)}, {{"axis", "-1"}, {"keepdims", "1"}});
  const Symbol sum = Layer("broadcast_add", "sum", {Dense("b", data, 1024), mean});
  const Symbol other = Layer("broadcast_add", "other", {mean, Dense("c", data, 1024)});
  for (const Symbol& y : {sum, other}) {
    const Symbol loss = Layer("MakeLoss", "loss", {Layer("Dropout", "drop", {y})});
    const Arenas arenas = ArenasOf(loss, {256, 64}, true);
    for (const std::string& chain : arenas.chains) CHECK_FALSE(chain.starts_with("mean+other"));
    CHECK(arenas.fused <= arenas.apart + arenas.room);
  }
}

TEST_CASE("a chain on few rows reserves a workspace for few threads") {
  const Symbol bias = Symbol::Variable("bias_weight");
  const Symbol y = Layer("broadcast_add", "y", {Symbol::Variable("data"), bias});
  const Symbol loss =
      Layer("MakeLoss", "loss", {Layer("tanh", "tanh", {Layer("Dropout", "drop", {y})})});
  const SmallNet net{"few", loss, loss, {{"data", {4, 256}}}, {}, 0};
  BindRequest request = RequestFor(net, loss);
  request.shapes["bias_weight"] = {1, 256};
  int64_t room[2] = {};
  for (const bool many : {false, true}) {
    const auto runtime = NewRuntime("naive", many ? 16 : 1);
    const Outcome outcome = RunNet(*runtime, net, request);
    CHECK(outcome.chains == std::vector<std::string>{"y+drop+tanh"});
    room[many] = outcome.room;
  }
  CHECK(room[true] == room[false]);
}

TEST_CASE("sums of more terms than a chain takes are left to their operators") {
  const auto runtime = NewRuntime("naive", 1);
  std::vector<Symbol> terms;
  for (int i = 0; i < 70; ++i) terms.push_back(Symbol::Variable(format("term{}_weight", i)));
  const Symbol sum = Symbol::Create(TestRegistry(), "ElementWiseSum", "sum", {}, terms);
  const Symbol both = Layer("elemwise_add", "both", {Symbol::Variable("data"), sum});
  const Symbol loss = Layer("MakeLoss", "loss", {Layer("sigmoid", "sigmoid", {both})});
  const SmallNet net{"terms", loss, loss, {{"data", {3, 5}}}, {}, 0};
  BindRequest request = RequestFor(net, loss);
  for (const std::string& name : loss.ListArguments()) request.shapes[name] = {3, 5};
  for (const std::string& chain : RunNet(*runtime, net, request).chains)
    CHECK(chain.find("sum+") == std::string::npos);
}

}  // namespace
}  // namespace mxtrain::test
