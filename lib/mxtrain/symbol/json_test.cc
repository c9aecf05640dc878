// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "mxtrain/symbol/symbol.h"
#include "tests/support/tiny_operators.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::Strings;

class SymbolFiles {
 public:
  SymbolFiles() { test::AddTinyOperators(registry); }
  Symbol Read(const std::string& json, const std::string& pooling = "valid") const {
    return Symbol::FromJson(registry, json, pooling);
  }
  std::string ErrorOf(const std::string& json) const {
    try {
      Read(json);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kData);
      return error.what();
    }
    return "no error";
  }
  OperatorRegistry registry;
};

std::string NodeParam(const Symbol& symbol, const std::string& node, const std::string& key) {
  for (const Node& n : symbol.graph().nodes) {
    if (n.name != node) continue;
    for (const auto& [name, value] : n.op->GetParams()) {
      if (name == key) return value;
    }
  }
  return "absent";
}

// A file of version 1.x with the given nodes, the last of which is the head.
std::string File(const std::string& nodes, int head) {
  return "{\"nodes\": [" + nodes + "], \"heads\": [[" + std::to_string(head) +
         ", 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}";
}

constexpr const char* kForm08 = R"J({
  "nodes": [
    {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "fc1_weight", "inputs": [], "backward_source_id": -1, "attr": {"lr_mult": "2"}},
    {"op": "null", "param": {}, "name": "fc1_bias", "inputs": [], "backward_source_id": -1},
    {"op": "FullyConnected", "param": {"no_bias": "False", "num_hidden": "128"}, "name": "fc1",
     "inputs": [[0, 0], [1, 0], [2, 0]], "backward_source_id": -1,
     "attr": {"ctx_group": "stage1", "bias_lr_mult": "3", "data_wd_mult": "0", "mood": "good"}},
    {"op": "null", "param": {}, "name": "bn_gamma", "inputs": [], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
    {"op": "BatchNorm", "param": {"eps": "2e-05", "fix_gamma": "False"}, "name": "bn",
     "inputs": [[3, 0], [4, 0], [5, 0]], "backward_source_id": -1, "attr": {"lr_mult": "0.5"}},
    {"op": "Pooling", "param": {"kernel": "(3L,3L)", "workspace": "512"}, "name": "pool", "inputs": [[6, 0]], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "softmax_label", "inputs": [], "backward_source_id": -1},
    {"op": "Softmax", "param": {}, "name": "softmax", "inputs": [[7, 0], [8, 0]], "backward_source_id": -1}
  ],
  "arg_nodes": [0, 1, 2, 4, 5, 8],
  "heads": [[9, 0]]
})J";

}  // namespace

TEST_CASE_FIXTURE(
    SymbolFiles,
    "0.8: missing auxiliaries are made, attributes find their variables, old names are aliases") {
  const Symbol net = Read(kForm08);
  CHECK(net.ListArguments() ==
        Strings{"data", "fc1_weight", "fc1_bias", "bn_gamma", "bn_beta", "softmax_label"});
  CHECK(net.ListAuxiliaryStates() == Strings{"bn_moving_mean", "bn_moving_var"});
  CHECK(net.ListOutputs() == Strings{"softmax_output"});
  const auto attrs = net.ListAttrs();
  CHECK(attrs.at("fc1") == Attrs{{"ctx_group", "stage1"}, {"mood", "good"}});
  CHECK(attrs.at("fc1_weight") == Attrs{{"lr_mult", "2"}});
  CHECK(attrs.at("fc1_bias") == Attrs{{"lr_mult", "3"}});
  CHECK(attrs.at("data") == Attrs{{"wd_mult", "0"}});
  CHECK(attrs.at("bn_moving_var") == Attrs{{"lr_mult", "0.5"}});
  CHECK(NodeParam(net, "fc1", "num_hidden") == "128");
  CHECK(NodeParam(net, "pool", "kernel") == "(3, 3)");
  CHECK(NodeParam(net, "pool", "pooling_convention") == "valid");
  CHECK(NodeParam(Read(kForm08, "full"), "pool", "pooling_convention") == "full");

  const std::string written = net.ToJson();
  CHECK(Read(written).ToJson() == written);
  CHECK(Read(written).ListAttrs().at("fc1") ==
        Attrs{{"ctx_group", "stage1"}, {"__mood__", "good"}});
  // The file has a version now.
  CHECK(NodeParam(Read(written, "full"), "pool", "pooling_convention") == "valid");
}

TEST_CASE_FIXTURE(SymbolFiles,
                  "0.7: no parameters of later versions, scalars on the left, scalar samplers") {
  const Symbol net = Read(R"J({"nodes": [
    {"op": "null", "param": {}, "name": "x", "inputs": [], "backward_source_id": -1},
    {"op": "_MinusScalar", "param": {"scalar": "1", "scalar_on_left": "True"}, "name": "flipped", "inputs": [[0, 0]], "backward_source_id": -1},
    {"op": "_MinusScalar", "param": {"scalar": "2", "scalar_on_left": "False"}, "name": "less", "inputs": [[1, 0]], "backward_source_id": -1},
    {"op": "_sample_uniform", "param": {"low": "-1", "high": "1", "shape": "(2,)"}, "name": "noise", "inputs": [], "backward_source_id": -1},
    {"op": "_Plus", "param": {}, "name": "sum", "inputs": [[2, 0], [3, 0]], "backward_source_id": -1},
    {"op": "argmax", "param": {"axis": "-1"}, "name": "best", "inputs": [[4, 0]], "backward_source_id": -1},
    {"op": "LeakyReLU", "param": {"act_type": "prelu"}, "name": "prelu", "inputs": [[5, 0]], "backward_source_id": -1}
    ], "arg_nodes": [0], "heads": [[6, 0]]})J");
  const Graph& graph = net.graph();
  auto type = [&](const std::string& name) {
    for (const Node& node : graph.nodes) {
      if (node.name == name) return node.op->TypeString();
    }
    return std::string();
  };
  CHECK(type("flipped") == "_rminus_scalar");
  CHECK(type("less") == "_minus_scalar");
  CHECK(type("noise") == "_random_uniform");
  CHECK(type("sum") == "elemwise_add");
  CHECK(NodeParam(net, "best", "axis") == "None");
  CHECK(net.ListArguments() == Strings{"x", "prelu_gamma"});
  CHECK(net.ListAttrs().at("prelu_gamma").contains("__init__"));
}

TEST_CASE_FIXTURE(SymbolFiles, "0.9 to 0.12: parameters and attributes share `attr`") {
  const Symbol net = Read(R"J({"nodes": [
    {"op": "null", "name": "data", "attr": {"__shape__": "(0, 5)"}, "inputs": []},
    {"op": "null", "name": "fc_weight", "inputs": []},
    {"op": "FullyConnected", "name": "fc", "attr": {"num_hidden": "4", "no_bias": "True", "lr_mult": "0", "weight_wd_mult": "7"},
     "inputs": [[0, 0, 0], [1, 0, 0]]},
    {"op": "argmax", "name": "best", "attr": {"axis": "-1"}, "inputs": [[2, 0, 0]]}],
    "arg_nodes": [0, 1], "node_row_ptr": [0, 1, 2, 3, 4], "heads": [[3, 0, 0]], "attrs": {"mxnet_version": ["int", 905]}})J");
  CHECK(net.ListAttrs().at("fc") == Attrs{{"lr_mult", "0"}});
  CHECK(net.ListAttrs().at("fc_weight") == Attrs{{"wd_mult", "7"}});
  CHECK(NodeParam(net, "fc", "no_bias") == "True");
  CHECK(NodeParam(net, "best", "axis") == "-1");  // means -1 from 0.9.5 on
  CHECK(net.InferShape({}).arguments[0] == TShape{-1, 5});
}

TEST_CASE_FIXTURE(SymbolFiles, "1.x: written exactly") {
  const Symbol data = Symbol::Variable(
      "data", {{"__shape__", "(-1, 6)"}, {"__dtype__", "float16"}, {"lr_mult", "0"}});
  const Symbol bn = Symbol::Create(registry, "BatchNorm", "bn", {}, std::vector{data}, {},
                                   {{"ctx_group", "a"}, {"mood", "good"}});
  CHECK(bn.ToJson() == R"J({
  "nodes": [
    {"op":"null","name":"data","attrs":{"__dtype__":"2","__lr_mult__":"0","__shape__":"(0, 6)"},"inputs":[]},
    {"op":"null","name":"bn_gamma","attrs":{"__ctx_group__":"a","mood":"good"},"inputs":[]},
    {"op":"null","name":"bn_beta","attrs":{"__ctx_group__":"a","mood":"good"},"inputs":[]},
    {"op":"null","name":"bn_moving_mean","attrs":{"__ctx_group__":"a","mood":"good"},"inputs":[]},
    {"op":"null","name":"bn_moving_var","attrs":{"__ctx_group__":"a","mood":"good"},"inputs":[]},
    {"op":"BatchNorm","name":"bn","attrs":{"eps":"0.001","fix_gamma":"True","__ctx_group__":"a","__mood__":"good"},"inputs":[[0,0,0],[1,0,0],[2,0,0],[3,0,0],[4,0,0]]}
  ],
  "arg_nodes": [0,1,2,3,4],
  "node_row_ptr": [0,1,2,3,4,5,8],
  "heads": [[5,0,0]],
  "attrs": {"mxnet_version":["int",10901]}
}
)J");
  CHECK(Read(bn.ToJson()).ListArguments() == bn.ListArguments());
}

TEST_CASE_FIXTURE(SymbolFiles, "any key order, any node order, escapes, unknown keys") {
  const Symbol net = Read(R"({"heads": [[0, 0]], "author": {"a": [1]}, "nodes": [
    {"inputs": [[1, 0, 0]], "attrs": {"act_type": "relu"}, "name": "gr\u00fcn", "op": "Activation", "colour": 3},
    {"inputs": [], "name": "x", "op": "null"}]})");
  CHECK(net.ListOutputs() == Strings{"gr\xc3\xbcn_output"});
  CHECK(net.ListArguments() == Strings{"x"});
}

TEST_CASE_FIXTURE(SymbolFiles,
                  "operators of one name get suffixes, variables of one name are rejected") {
  const std::string x = R"({"op": "null", "name": "x", "inputs": []})";
  auto relu = [](int input) {
    return R"(, {"op": "Activation", "name": "relu", "attrs": {"act_type": "relu"}, "inputs": [[)" +
           std::to_string(input) + ", 0, 0]]}";
  };
  const Symbol net = Read(File(x + relu(0) + relu(1) + relu(2), 3));
  CHECK(net.GetInternals().ListOutputs() ==
        Strings{"x", "relu_output", "relu_1_output", "relu_2_output"});
  CHECK(ErrorOf(File(x + ", " + x, 1)).find("two variables have the name 'x'") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(SymbolFiles,
                  "what cannot be read is rejected with the node's name and the reason") {
  auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string x = R"({"op": "null", "name": "x", "inputs": []}, )";
  CHECK(has(ErrorOf("{"), "invalid JSON"));
  CHECK(has(ErrorOf("[]"), "contains array"));
  CHECK(has(ErrorOf("{}"), "the file has no \"nodes\""));
  CHECK(
      has(ErrorOf(R"({"nodes": {}})"), "\"nodes\" of the file is object, but array was expected"));
  CHECK(has(ErrorOf(R"({"nodes": [], "heads": []})"), "no heads"));
  CHECK(has(ErrorOf(R"({"nodes": [7], "heads": []})"), "node 0 is number"));
  CHECK(has(ErrorOf(R"({"nodes": [{"op": 3, "name": "a", "inputs": []}], "heads": []})"),
            "\"op\" of node 0 'a' is number"));
  CHECK(has(ErrorOf(R"({"nodes": [{"op": "null", "inputs": []}], "heads": []})"),
            "node 0 has no \"name\""));
  CHECK(has(ErrorOf(R"({"nodes": [{"op": "null", "name": "a"}], "heads": []})"),
            "node 0 'a' has no \"inputs\""));
  CHECK(has(ErrorOf(File(R"({"op": "null", "name": "x", "attrs": {"a": 1}, "inputs": []})", 0)),
            "'a' is number, but a string was expected"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Custom", "name": "mine", "attrs": {"op_type": "swish"}, "inputs": [[0, 0, 0]]})",
          1)),
      "node 1 'mine' is a custom operator defined outside the file (Custom, op_type swish)"));
  // Old files may lack inputs, but not those that the file itself counts.
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Concat", "name": "all", "attrs": {"num_args": "65000"}, "inputs": [[0, 0, 0]]})",
          1)),
      "node 1, Concat 'all' takes 65000 inputs, but has 1"));
  CHECK(
      has(ErrorOf(File(
              x + R"({"op": "_foreach", "name": "loop", "inputs": [[0, 0, 0]], "subgraphs": [{}]})",
              1)),
          "node 1 'loop' (_foreach) has subgraphs"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "control_deps": [0], "inputs": [[0, 0, 0]]})",
          1)),
      "control_deps"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "backward_source_id": 0, "inputs": [[0, 0, 0]]})",
          1)),
      "gradient graph"));
  CHECK(has(ErrorOf(File(x + R"({"op": "Warp", "name": "a", "inputs": [[0, 0, 0]]})", 1)),
            "Warp 'a' (node 1): there is no operator 'Warp'"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_tipe": "relu"}, "inputs": [[0, 0, 0]]})",
          1)),
      "Activation 'a' (node 1) has no parameter 'act_tipe'; did you mean 'act_type'?"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[2, 0, 0]]})",
          1)),
      "inputs of node 1 'a': there is no node 2; the file has 2"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[0, 1, 0]]})",
          1)),
      "node 1, Activation 'a' reads output 1 of node 0, variable 'x', which has 1"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[-1, 0, 0]]})",
          1)),
      "no node -1"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[0]]})",
          1)),
      "an entry is"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0], [0, 0, 0]]})",
          1)),
      "takes 1 inputs, but has 2"));
  CHECK(has(ErrorOf(File(x + R"({"op": "BatchNorm", "name": "b", "inputs": [[0, 0, 0]]})", 1)),
            "takes 5 inputs, but has 1"));
  CHECK(has(
      ErrorOf(File(
          x + R"({"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[2, 0, 0]]},
                              {"op": "Activation", "name": "b", "attrs": {"act_type": "relu"}, "inputs": [[1, 0, 0]]})",
          1)),
      "depends on itself"));
  CHECK(has(ErrorOf(R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[1, 0]]})"),
            "heads: there is no node 1"));
  CHECK(has(
      ErrorOf(
          R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[0, 0]], "attrs": {"mxnet_version": 3}})"),
      "mxnet_version"));
}

// 100,000 times the same head kept a program busy for ever.
TEST_CASE_FIXTURE(SymbolFiles, "a file has a limited number of heads") {
  const auto file_of = [](int heads) {
    std::string list;
    for (int i = 0; i < heads; ++i) list += i ? ", [0, 0, 0]" : "[0, 0, 0]";
    return R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [)" + list + "]}";
  };
  CHECK(Read(file_of(4096)).ListOutputs() == Strings(4096, "x"));
  CHECK(ErrorOf(file_of(4097)) ==
        "symbol file: the file has 4097 heads; at most 4096 are supported");
}

// The outputs of the node were listed anew for each head: 10^10 names for these.
TEST_CASE_FIXTURE(SymbolFiles, "the outputs of a node with many are listed once") {
  const std::vector<Symbol> inputs{Symbol::Variable("x")};
  const Symbol parts =
      Symbol::Create(registry, "SliceChannel", "parts", {{"num_outputs", "100000"}}, inputs);
  const Strings names = parts.ListOutputs();
  REQUIRE(names.size() == 100'000);
  CHECK(names.back() == "parts_output99999");
  // And anew for each of them by the message of an error (found by fuzzing).
  CHECK_THROWS_WITH_AS(parts.InferShape({{"x", TShape{2, 3}}}),
                       doctest::Contains("cannot be split"), Error);
}

TEST_CASE_FIXTURE(SymbolFiles, "every truncation of a file is an error, never a crash") {
  const std::string whole = kForm08;
  for (size_t length = 0; length < whole.size() - 1; ++length)
    CHECK_THROWS_AS(Read(whole.substr(0, length)), Error);
}

TEST_CASE_FIXTURE(SymbolFiles, "damaged characters: read or rejected, never a crash") {
  const std::string whole = Read(kForm08).ToJson();
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>("x9]\"{-"[at % 6]);
    try {
      const Symbol net = Read(damaged);
      net.InferShape({});
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > static_cast<int>(whole.size()) / 4);
}

TEST_CASE_FIXTURE(SymbolFiles, "names that are not UTF-8 cannot be written") {
  CHECK_THROWS_AS(Symbol::Variable("\xff").ToJson(), Error);
}

}  // namespace mxtrain
