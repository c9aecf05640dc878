// SPDX-License-Identifier: Apache-2.0
#include "app/config/net.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "config_test.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {
namespace {

using Strings = std::vector<std::string>;

const Node& NodeOf(const Symbol& symbol, const std::string& name) {
  const auto& nodes = symbol.graph().nodes;
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name == name; });
  REQUIRE_MESSAGE(found != nodes.end(), name);
  return *found;
}
std::string ParamOf(const Symbol& symbol, const std::string& name, const std::string& key) {
  for (const auto& [k, v] : NodeOf(symbol, name).op->GetParams()) {
    if (k == key) return v;
  }
  return "";
}

TEST_CASE("each layer takes the previous one; scalars become tuples; nodes know their line") {
  const Outcome o = BuildLayers(
      "    - Convolution: {num_filter: 4, kernel: 3, pad: [1, 0]}\n"
      "    - Activation: {act_type: relu}\n"
      "    - Flatten\n"
      "    - FullyConnected: {num_hidden: 10, no_bias: true}\n"
      "    - SoftmaxOutput: {name: softmax}\n");
  CHECK(o.text == "");
  const Symbol& s = o.net.symbol;
  CHECK(s.ListArguments() == Strings{"data", "convolution0_weight", "convolution0_bias",
                                     "fullyconnected0_weight", "softmax_label"});
  CHECK(ParamOf(s, "convolution0", "kernel") == "(3, 3)");
  CHECK(ParamOf(s, "convolution0", "pad") == "(1, 0)");
  CHECK(ParamOf(s, "fullyconnected0", "no_bias") == "True");
  CHECK(NodeOf(s, "convolution0").where == "net.yaml:4");
  CHECK(o.net.labels.size() == 1);
  CHECK(o.net.labels[0].name == "softmax_label");
  const Symbol::Shapes shapes = s.InferShape(config::BatchShapes(o.net, 5));
  CHECK(shapes.complete);
  CHECK(shapes.outputs[0] == TShape{5, 10});
}

TEST_CASE("a scalar is expanded to the number of axes of its input") {
  const Outcome o = BuildLayers(
      "    - Convolution: {num_filter: 4, kernel: 3}\n    - Activation\n    - Pooling: {kernel: 2, "
      "stride: 2}\n",
      "", "input: [3, 8]");
  CHECK(o.text == "");
  CHECK(ParamOf(o.net.symbol, "convolution0", "kernel") == "(3,)");
  CHECK(ParamOf(o.net.symbol, "pooling0", "kernel") == "(2,)");
}

TEST_CASE("padding as a word: TensorFlow's") {
  TemporaryFolder folder;
  folder.Write("net.yaml",
               "net:\n  input: [3, 7, 8]\n  layers:\n"
               "    - Convolution: {num_filter: 4, kernel: 3, stride: 2, pad: same}\n"
               "    - Pooling: {kernel: 2, stride: 3, pad: same}\n"
               "    - Convolution: {num_filter: 4, kernel: 3, pad: [\"${2 - 1}\", 2]}\n"
               "data: {train: {source: mnist, path: .}}\n");
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.working_folder = folder.path();
  const auto operators = BuiltinOperators();
  const Outcome o = LoadAndBuild(request, *operators);
  CHECK(o.text == "");
  CHECK(ParamOf(o.net.symbol, "convolution0", "pad") == "same");
  CHECK(ParamOf(o.net.symbol, "convolution1", "pad") == "(1, 2)");
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 5));
  CHECK(shapes.outputs.at(0) == TShape{5, 4, 2, 4});
}

TEST_CASE("a scalar output_size has the axes of the window, if there is one") {
  TemporaryFolder folder;
  folder.Write("net.yaml",
               "net:\n  input: [3, 8, 8]\n  layers:\n    - im2col: {kernel: 3, pad: 1}\n"
               "    - col2im: {kernel: 3, pad: 1, output_size: 8}\n"
               "    - AdaptiveAvgPooling2D: {output_size: 2}\n"
               "data: {train: {source: mnist, path: .}}\n");
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.working_folder = folder.path();
  const auto operators = BuiltinOperators();
  const Outcome o = LoadAndBuild(request, *operators);
  CHECK(o.text == "");
  CHECK(ParamOf(o.net.symbol, "col2im0", "output_size") == "(8, 8)");
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 5));
  CHECK(shapes.outputs.at(0) == TShape{5, 3, 2, 2});
}

TEST_CASE("a pooling window without a stride gives a warning") {
  const auto text = [](const std::string& pooling) {
    return BuildLayers("    - Pooling: {" + pooling + "}\n", "", "input: [3, 8, 8]").text;
  };
  CHECK(text("kernel: 2")
            .find("'pooling0' has a window of (2, 2) and no stride, so the stride is 1") !=
        std::string::npos);
  CHECK(text("kernel: 2, stride: 1") == "");
  CHECK(text("kernel: 1") == "");
  CHECK(text("kernel: 2, global_pool: true") == "");
}

TEST_CASE("a softmax before SoftmaxOutput gives a warning") {
  const auto text = [](const std::string& before) {
    TemporaryFolder folder;
    folder.Write("net.yaml",
                 "net:\n  input: [3]\n  layers:\n    - FullyConnected: {num_hidden: 2}\n    - " +
                     before +
                     "\n    - SoftmaxOutput: {name: head}\n"
                     "data: {train: {source: mnist, path: .}}\n");
    config::LoadRequest request;
    request.files = {"net.yaml"};
    request.working_folder = folder.path();
    return LoadAndBuild(request, *BuiltinOperators()).text;
  };
  for (const std::string op : {"softmax", "SoftmaxActivation"}) {
    CAPTURE(op);
    CHECK(text(op + ": {name: probs}")
              .find("SoftmaxOutput 'head' applies softmax itself; its input 'probs' is a softmax "
                    "already") != std::string::npos);
  }
  CHECK(text("log_softmax: {name: probs}") == "");
  CHECK(text("Activation: {act_type: tanh}") == "");
}

TEST_CASE("inputs by name, several outputs, forward references, attributes") {
  const Outcome o = BuildLayers(
      "    - elemwise_add: {name: sum, inputs: [parts.output1, early]}\n"
      "    - SliceChannel: {name: parts, inputs: data, num_outputs: 3}\n"
      "    - Activation: {name: early, inputs: parts.0, attrs: {ctx_group: a}}\n"
      "    - FullyConnected: {name: fc, inputs: sum, num_hidden: 2, attrs: {lr_mult: 0, "
      "bias_lr_mult: 2}}\n"
      "    - Concat: {inputs: [fc, fc]}\n",
      "");
  CHECK(o.text.find("warning: nothing reads the layer") == std::string::npos);
  CHECK(o.diagnostics.empty());
  const Symbol& s = o.net.symbol;
  CHECK(NodeOf(s, "fc_weight").attrs.at("lr_mult") == "0");
  CHECK(NodeOf(s, "fc_bias").attrs.at("lr_mult") == "2");
  CHECK(NodeOf(s, "early").attrs.at("ctx_group") == "a");
  CHECK(ParamOf(s, "concat0", "num_args") == "2");
}

TEST_CASE("whole numbers of an initializer stay whole") {
  const Outcome o = BuildLayers(
      "    - Variable: {name: w1, shape: [4, 4], init: {name: normal, sigma: 2}}\n"
      "    - Flatten\n"
      "    - FullyConnected: {name: a, num_hidden: 4, weight: w1}\n");
  CHECK(o.text == "");
  CHECK(NodeOf(o.net.symbol, "w1").attrs.at("__init__") == R"(["normal",{"sigma":2}])");
}

TEST_CASE("shared parameters: declared ones and those of another layer") {
  const Outcome o = BuildLayers(
      "    - Variable: {name: w1, shape: [4, 4], init: {normal: 0.5}, lr_mult: 2, wd_mult: 0}\n"
      "    - Flatten\n"
      "    - FullyConnected: {name: first, num_hidden: 4}\n"
      "    - FullyConnected: {name: a, num_hidden: 4, weight: w1}\n"
      "    - FullyConnected: {name: b, num_hidden: 4, weight: w1, bias: first_bias}\n");
  CHECK(o.text == "");
  const Symbol& s = o.net.symbol;
  CHECK(s.ListArguments() == Strings{"data", "first_weight", "first_bias", "w1", "a_bias"});
  CHECK(NodeOf(s, "w1").attrs.at("__init__") == R"(["normal",{"sigma":0.5}])");
  CHECK(NodeOf(s, "w1").attrs.at("__shape__") == "(4, 4)");
  CHECK(NodeOf(s, "w1").attrs.at("wd_mult") == "0");
}

TEST_CASE(
    "blocks: parameters, defaults, own names, inputs, several outputs, and Variables from "
    "outside") {
  const Outcome o = BuildLayers(
      "    - Flatten\n"
      "    - Variable: {name: shared}\n"
      "    - unit: {name: one, width: 8}\n"
      "    - unit: {width: 8, scale: 3, inputs: one}\n"
      "    - pair: {name: two, inputs: [one, unit0]}\n"
      "    - elemwise_add: {inputs: [two.left, two.right]}\n",
      "blocks:\n"
      "  unit:\n"
      "    params: {width, scale: 2, total: \"${width * scale}\"}\n"
      "    layers:\n"
      "      - FullyConnected: {name: fc, num_hidden: \"${total}\"}\n"
      "      - FullyConnected: {name: back, num_hidden: \"${width}\", bias: shared}\n"
      "      - Activation: {inputs: back, when: \"${scale > 2}\"}\n"
      "  pair:\n"
      "    inputs: [a, b]\n"
      "    outputs: [left, right]\n"
      "    layers:\n"
      "      - Activation: {name: left, inputs: a}\n"
      "      - Activation: {name: right, inputs: b}\n");
  CHECK(o.text == "");
  const Symbol& s = o.net.symbol;
  CHECK(s.ListArguments() == Strings{"data", "one_fc_weight", "one_fc_bias", "one_back_weight",
                                     "shared", "unit0_fc_weight", "unit0_fc_bias",
                                     "unit0_back_weight"});
  CHECK(ParamOf(s, "one_fc", "num_hidden") == "16");
  CHECK(ParamOf(s, "unit0_fc", "num_hidden") == "24");
  CHECK(NodeOf(s, "unit0_activation0").name == "unit0_activation0");
  CHECK(NodeOf(s, "one_fc").where == "net.yaml:15");
}

TEST_CASE("repeat with an index; vars; the number of classes") {
  const Outcome o = BuildLayers(
      "    - Flatten\n"
      "    - repeat: {count: \"${depth}\", index: k, layers: [{FullyConnected: {name: "
      "\"fc${k}\", num_hidden: \"${base + 2 * k}\"}}, Activation]}\n"
      "    - FullyConnected: {num_hidden: \"${classes}\", name: last}\n",
      "vars: {base: 4, depth: \"${base - 1}\"}\n");
  CHECK(o.text == "");
  CHECK(ParamOf(o.net.symbol, "fc2", "num_hidden") == "8");
  CHECK(ParamOf(o.net.symbol, "last", "num_hidden") == "1000");
  CHECK(NodeOf(o.net.symbol, "activation2").op->TypeString() == "Activation");
}

TEST_CASE("several inputs, several losses, labels by name, declared outputs") {
  const std::string layers =
      "    - FullyConnected: {name: fc, inputs: left, num_hidden: 4}\n"
      "    - elemwise_add: {name: sum, inputs: [fc, right]}\n"
      "    - SoftmaxOutput: {name: kind, label: kind_of}\n"
      "    - LinearRegressionOutput: {name: size, inputs: sum, label: size_label}\n";
  const Outcome o =
      BuildLayers(layers, "", "inputs: {left: [3], right: {shape: [4], dtype: float32}}");
  CHECK(o.text == "");
  CHECK(o.net.symbol.ListOutputs() == Strings{"kind_output", "size_output"});
  CHECK(o.net.labels.size() == 2);
  CHECK(o.net.labels[0].name == "kind_of");
  CHECK(o.net.inputs[1].shape == TShape{4});
  const Outcome one = BuildLayers(layers, "", "inputs: {left: [3], right: [4]}\n  outputs: size");
  CHECK(one.net.symbol.ListOutputs() == Strings{"size_output"});
  CHECK(one.text.find("warning: nothing reads the layer 'kind', and it is not an output") !=
        std::string::npos);
}

TEST_CASE("a label that layers read is an input with a shape") {
  const Outcome o = BuildLayers(
      "    - FullyConnected: {name: fit, num_hidden: 1}\n"
      "    - elemwise_sub: {inputs: [fit, y]}\n"
      "    - smooth_l1\n"
      "    - MakeLoss: {name: loss}\n"
      "    - BlockGrad: {name: fitted, inputs: fit}\n",
      "", "inputs: {x: [3]}\n  labels: {y: [1]}");
  CHECK(o.text == "");
  CHECK(o.net.labels[0].name == "y");
  CHECK(config::BatchShapes(o.net, 4).at("y") == TShape{4, 1});
  CHECK(o.net.symbol.ListOutputs() == Strings{"loss_output", "fitted_output"});
}

TEST_CASE("shape errors are reported at their layer") {
  const Outcome o = BuildLayers(
      "    - Flatten\n    - unit: {name: u}\n",
      "blocks: {unit: {layers: [{Convolution: {name: conv, num_filter: 2, kernel: 3}}]}}\n");
  CHECK(o.text == "");
  config::Diagnostics diagnostics(o.sources);
  try {
    o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
    FAIL("must throw");
  } catch (const Error& error) {
    diagnostics.Add(config::ToDiagnostic(o.net, error, {}));
  }
  const std::string text = config::Render(diagnostics.Sorted(), *o.sources);
  CHECK_MESSAGE(text.starts_with("net.yaml:7:"), text);
  CHECK_MESSAGE(text.find("note: in block 'unit', used at net.yaml:5") != std::string::npos, text);
}

}  // namespace
}  // namespace mxtrain::test
