// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_shapes.h"

#include <doctest/doctest.h>

#include "config_test.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {
namespace {

// A net of the built-in operators on rows of 4 numbers. `layers` begins at line 4.
Outcome Build(const std::string& layers) {
  static const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  TemporaryFolder folder;
  folder.Write("net.yaml", "net:\n  input: [4]\n  layers:\n" + layers +
                               "data: {train: {source: mnist, path: .}}\n");
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.working_folder = folder.path();
  return LoadAndBuild(request, *registry);
}

// The first line and the help of each diagnostic.
std::string Checked(const std::string& layers, int64_t batch) {
  const Outcome o = Build(layers);
  REQUIRE(o.text == "");
  config::Diagnostics diagnostics(o.sources);
  config::CheckNetShapes(o.net, batch, {}, {}, &diagnostics);
  return config::Render(diagnostics.Sorted(), *o.sources);
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a Variable whose shape is not known is reported at its place") {
  const std::string text = Checked(
      "    - Variable: {name: w}\n"
      "    - FullyConnected: {name: fc, num_hidden: 3}\n"
      "    - broadcast_add: {name: sum, inputs: [fc, w]}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      8);
  CHECK_MESSAGE(text.starts_with("net.yaml:4:"), text);
  CHECK_MESSAGE(Has(text,
                    "error: the shape of variable 'w' is not known: broadcast_add 'sum' "
                    "(net.yaml:6) implies only ?"),
                text);
  CHECK_MESSAGE(Has(text, "help: write the shape into the Variable: {shape: [...]}"), text);
  CHECK_MESSAGE(!Has(text, "__shape__"), text);
}

TEST_CASE("a label that is left to the data does not hide a variable whose shape is not known") {
  const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  const auto add = [&](const char* name, const Symbol& lhs, const char* rhs) {
    return Symbol::Create(*registry, "broadcast_add", name, {},
                          std::vector{lhs, Symbol::Variable(rhs)});
  };
  config::Net net;
  net.symbol = add("first", Symbol::Variable("y"), "x");
  net.inputs.push_back({"x", TShape{4}, DType::kFloat32});
  net.labels.push_back({"y", TShape(), DType::kFloat32});
  const auto check = [&net] {
    config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
    config::CheckNetShapes(net, 8, {}, {}, &diagnostics);
    return diagnostics.Sorted();
  };
  CHECK(check().empty());
  net.symbol = add("second", net.symbol, "w");
  REQUIRE(check().size() == 1);
  CHECK(check()[0].message ==
        "the shape of variable 'w' is not known: broadcast_add 'second' implies only ?");
}

TEST_CASE("sides that the points of a detector do not divide are told, not what follows in it") {
  const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  const auto check = [&](const std::string& input) {
    TemporaryFolder folder;
    folder.Write("net.yaml",
                 "net:\n  input: " + input +
                     "\n  layers:\n"
                     "    - Convolution: {name: fine, num_filter: 4, kernel: 1}\n"
                     "    - Pooling: {name: half, kernel: 2, stride: 2}\n"
                     "    - UpSampling: {name: up, scale: 2, sample_type: nearest}\n"
                     "    - Concat: {name: both, inputs: [fine, up]}\n"
                     "    - Convolution: {name: score, num_filter: 2, kernel: 1}\n"
                     "    - Convolution: {name: side, inputs: both, num_filter: 4, kernel: 1}\n"
                     "    - PointBoxes: {name: boxes, inputs: [score, side], strides: [2]}\n"
                     "data: {train: {source: mnist, path: .}}\n");
    config::LoadRequest request;
    request.files = {"net.yaml"};
    request.working_folder = folder.path();
    const Outcome o = LoadAndBuild(request, *registry);
    REQUIRE(o.text == "");
    config::Diagnostics diagnostics(o.sources);
    config::CheckNetShapes(o.net, 1, o.loaded.config.net.input.place, {}, &diagnostics);
    return config::Render(diagnostics.Sorted(), *o.sources);
  };
  CHECK(check("[3, 6, 8]") == "");
  const std::string text = check("[3, 7, 8]");
  CHECK_MESSAGE(text.starts_with("net.yaml:2:10: error: the input 'data' is [3, 7, 8]: its sides "
                                 "must be multiples of 2, the distance of the points of PointBoxes "
                                 "'boxes' (net.yaml:10)\n"),
                text);
  CHECK_MESSAGE(Has(text, "help: for example [3, 6, 8], and the transforms to that size"), text);
}

TEST_CASE("layers that fit one batch size only give a warning at their place") {
  const std::string reshaped = Checked(
      "    - FullyConnected: {num_hidden: 10}\n"
      "    - Reshape: {name: fixed, shape: [32, 10]}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      32);
  CHECK_MESSAGE(reshaped.starts_with("net.yaml:5:"), reshaped);
  CHECK_MESSAGE(Has(reshaped,
                    "warning: the net fits batches of 32, but not of 33: Reshape "
                    "'fixed' (net.yaml:5): "),
                reshaped);

  const std::string declared = Checked(
      "    - Variable: {name: w, shape: [32, 3]}\n"
      "    - FullyConnected: {name: fc, num_hidden: 3}\n"
      "    - broadcast_add: {name: sum, inputs: [fc, w]}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      32);
  CHECK_MESSAGE(declared.starts_with("net.yaml:6:"), declared);
  CHECK_MESSAGE(Has(declared, "warning: the net fits batches of 32, but not of 33: "), declared);

  const std::string inferred = Checked(
      "    - Variable: {name: w}\n"
      "    - FullyConnected: {name: fc, num_hidden: 3}\n"
      "    - elemwise_add: {name: sum, inputs: [fc, w]}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      32);
  CHECK_MESSAGE(inferred.starts_with("net.yaml:4:"), inferred);
  CHECK_MESSAGE(Has(inferred,
                    "but not of 33: the parameter 'w' of elemwise_add 'sum' "
                    "(net.yaml:6) would be [33, 3] instead of [32, 3]"),
                inferred);

  const std::string sliced = Checked(
      "    - FullyConnected: {num_hidden: 3}\n"
      "    - slice_axis: {axis: 0, begin: 0, end: 32}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      32);
  CHECK_MESSAGE(sliced.starts_with("net.yaml:6:"), sliced);
  CHECK_MESSAGE(Has(sliced,
                    "but not of 33: the label 'softmax_label' of SoftmaxOutput 'softmax' "
                    "(net.yaml:6) stays [32]"),
                sliced);

  // Without an axis, squeeze also removes a batch of 1.
  const std::string squeezed = Checked(
      "    - squeeze\n"
      "    - FullyConnected: {name: fc, num_hidden: 3}\n"
      "    - SoftmaxOutput: {name: softmax}\n",
      8);
  CHECK_MESSAGE(squeezed.starts_with("net.yaml:5:"), squeezed);
  CHECK_MESSAGE(Has(squeezed, "help: `infer` may fail for a single example; squeeze "), squeezed);
  CHECK_MESSAGE(Has(squeezed,
                    "the net fits batches of 8, but not of 1: the parameter 'fc_weight' "
                    "of FullyConnected 'fc' (net.yaml:5) would be [3, 1] instead of"),
                squeezed);
}

TEST_CASE("layers that fit any batch size give no warning") {
  for (const int64_t batch : {1, 2, 32}) {
    CHECK(Checked("    - Variable: {name: w, shape: [1, 6]}\n"
                  "    - FullyConnected: {name: fc, num_hidden: 6}\n"
                  "    - broadcast_add: {inputs: [fc, w]}\n"
                  "    - Reshape: {shape: [0, 2, -1]}\n"
                  "    - Reshape: {shape: [-1, 3]}\n"
                  "    - SoftmaxOutput: {name: softmax}\n",
                  batch) == "");
  }
}

TEST_CASE("null in a list is MXNet's None, which also stands for a number that may be unset") {
  const Outcome o = Build(
      "    - slice: {begin: [null, 1], end: [None, 4], step: [null, 2]}\n"
      "    - slice_axis: {axis: 1, begin: 1, end: None}\n"
      "    - FullyConnected: {name: fc, num_hidden: 3}\n");
  CHECK(o.text == "");
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 5));
  CHECK(shapes.arguments[1] == TShape{3, 1});  // of the 4 numbers the second and fourth; the latter
  const std::string refused = Build("    - FullyConnected: {num_hidden: None}\n").text;
  CHECK_MESSAGE(Has(refused, "FullyConnected.num_hidden: expected an integer, got 'None'"),
                refused);
}

}  // namespace
}  // namespace mxtrain::test
