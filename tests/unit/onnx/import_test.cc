// SPDX-License-Identifier: Apache-2.0
// Graphs as other programs write them.
#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "mxtrain/onnx/export.h"
#include "mxtrain/onnx/import.h"
#include "tests/support/error_message.h"
#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

TEST_CASE_FIXTURE(Fixture, "MatMul and Add are one FullyConnected, its weight transposed") {
  model.initializers["fc.weight"] = Tensor::Floats({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  model.initializers["fc.bias"] = Tensor::Floats({3}, {5, 6, 7});
  model.nodes = {Node("MatMul", {"x", "fc.weight"}, "product"),
                 Node("Add", {"fc.bias", "product"}, "y")};
  const onnx::ImportedNet net = Import();
  REQUIRE(net.layers.size() == 1);
  CHECK(net.layers[0].op == "FullyConnected");
  CHECK(net.layers[0].name == "fc");
  CHECK(net.arrays.at("fc_weight").ToFloats() ==
        std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  CHECK(net.arrays.at("fc_bias").ToFloats() == std::vector<float>{5, 6, 7});
  CHECK(onnx::ToSymbol(net, operators).ListArguments() ==
        std::vector<std::string>{"x", "fc_weight", "fc_bias"});
}

TEST_CASE_FIXTURE(Fixture, "Gemm multiplies by alpha and beta") {
  model.initializers["w"] = Tensor::Floats({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  model.initializers["b"] = Tensor::Floats({3}, {1, 2, 3});
  model.nodes = {Node("Gemm", {"x", "w", "b"}, "y",
                      {{"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 3.0f}})};
  const onnx::ImportedNet net = Import();
  CHECK(net.arrays.at("y_node_weight").ToFloats()[11] == 24);
  CHECK(net.arrays.at("y_node_bias").ToFloats() == std::vector<float>{3, 6, 9});
}

TEST_CASE_FIXTURE(Fixture, "a layer that two nodes share keeps one weight") {
  model.initializers["w"] = Zeros({4, 4});
  model.nodes = {Node("Gemm", {"x", "w"}, "h", {{"transB", int64_t{1}}}),
                 Node("Gemm", {"h", "w"}, "y", {{"transB", int64_t{1}}})};
  const onnx::ImportedNet net = Import();
  CHECK(net.layers[1].arguments.at("weight") == "h_node_weight");
  CHECK(onnx::ToSymbol(net, operators).ListArguments() ==
        std::vector<std::string>{"x", "h_node_weight"});
}

TEST_CASE_FIXTURE(Fixture, "a weight is shared only if it is scaled alike") {
  model.initializers["w"] = Tensor::Floats({4, 4}, std::vector<float>(16, 1.0f));
  const auto gemm = [](const char* from, const char* to, float alpha) {
    return Node("Gemm", {from, "w"}, to, {{"transB", int64_t{1}}, {"alpha", alpha}});
  };
  model.nodes = {gemm("x", "a", 2), gemm("a", "b", 3), gemm("b", "y", 2)};
  const onnx::ImportedNet net = Import();
  CHECK(net.arrays.at("a_node_weight").ToFloats()[0] == 2);
  CHECK(net.arrays.at("b_node_weight").ToFloats()[0] == 3);
  CHECK(net.layers[2].arguments.at("weight") == "a_node_weight");
}

TEST_CASE_FIXTURE(Fixture, "what no output depends on is dropped") {
  model.initializers["w"] = Zeros({4, 4});
  model.nodes = {Node("Gemm", {"x", "w"}, "unread"), Node("Relu", {"x"}, "y"),
                 Node("Sigmoid", {"y"}, "after")};
  CHECK(Operators() == Ops{"Activation"});
  CHECK(Import().outputs == std::vector<std::string>{"y_node"});
  CHECK(Import().arrays.empty());
}

TEST_CASE_FIXTURE(Fixture, "arrays of layers have names that nothing else has") {
  model.initializers["fc.weight"] = Tensor::Floats({4, 4}, std::vector<float>(16, 1.0f));
  model.initializers["fc_weight"] = Tensor::Floats({4}, {2, 2, 2, 2});
  model.nodes = {Node("MatMul", {"x", "fc.weight"}, "h"), Node("Mul", {"h", "fc_weight"}, "y")};
  for (int order = 0; order < 2; ++order) {
    const onnx::ImportedNet net = Import();
    CHECK(net.arrays.size() == 2);
    const std::vector<std::string> arguments = onnx::ToSymbol(net, operators).ListArguments();
    CHECK(std::set<std::string>(arguments.begin(), arguments.end()).size() == 3);
    model.nodes = {Node("Mul", {"x", "fc_weight"}, "h"), Node("MatMul", {"h", "fc.weight"}, "y")};
  }
}

TEST_CASE_FIXTURE(Fixture, "an array that every node has for itself is limited") {
  model.initializers["b"] = Zeros({1 << 18});
  model.initializers["w"] = Zeros({1 << 18, 1});
  model.inputs = {Value("x", {-1, 1})};
  model.outputs.clear();
  for (int i = 0; i < 40; ++i) {
    const std::string name = format("h{}", i);
    model.nodes.push_back(Node("Gemm", {"x", "w", "b"}, name, {{"transB", int64_t{1}}}));
    model.outputs.push_back(Value(name, {-1, 1 << 18}));
  }
  CHECK(
      Message().ends_with("the model uses its arrays for too many layers that do not share them"));
}

TEST_CASE_FIXTURE(Fixture, "weights in Constant nodes are arrays of the file") {
  model.inputs = {Value("x", {-1, 2048})};
  model.nodes = {Node("Constant", {}, "fc.weight", {{"value", Zeros({2048, 2048})}}),
                 Node("Constant", {}, "second.weight", {{"value", Zeros({2048, 2048})}}),
                 Node("MatMul", {"x", "fc.weight"}, "h"),
                 Node("MatMul", {"h", "second.weight"}, "y")};
  const onnx::ImportedNet net = Import();
  CHECK(net.arrays.contains("fc_weight"));
  CHECK(net.arrays.contains("second_weight"));
}

TEST_CASE_FIXTURE(Fixture,
                  "resizing is of fixed lengths, by the operators for images where they do") {
  model.inputs = {Value("x", {-1, 2, 4, 4})};
  const auto resize = [this](const std::vector<float>& scales, const std::string& mode,
                             onnx::Attributes more = {}) {
    model.initializers["scales"] = Tensor::Floats({static_cast<int64_t>(scales.size())}, scales);
    more["mode"] = mode;
    model.nodes = {Node("Resize", {"x", "", "scales"}, "y", more)};
  };
  resize({1, 1, 2, 2}, "nearest");
  CHECK(Operators() == Ops{"UpSampling"});
  resize({1, 1, 1.5f, 1.5f}, "linear");
  CHECK(Operators() == Ops{"BilinearResize2D"});
  resize({1, 1, 2.1f, 1}, "linear");
  CHECK(Operators() == Ops{"SwapAxis", "dot", "SwapAxis"});
  resize({2}, "nearest", {{"axes", std::vector<int64_t>{1}}});
  CHECK(Operators() == Ops{"take"});
  const std::string refused = "Resize 'y_node' cannot be imported: ";
  resize({2, 1, 2, 2}, "nearest");
  CHECK(Message() == refused + "it resizes the batch");
  resize({2, 2}, "nearest");
  CHECK(Message() == refused + "it has 2 scales for 4 axes");
  resize({1, 1, std::numeric_limits<float>::infinity(), 2}, "linear");
  CHECK(Message() == refused + "the size of its output is inf");
  resize({1, 1, 0.6f, 1}, "linear",
         {{"coordinate_transformation_mode", std::string("align_corners")}});
  CHECK(Message().find("align_corners of a length of") != std::string::npos);
  model.initializers["sizes"] = Tensor::Ints({4}, {1, 2, 8, 8});
  model.nodes = {Node("Resize", {"x", "", "", "sizes"}, "y")};
  CHECK(Message().starts_with(refused + "it resizes "));
  model.inputs = {Value("x", {1, 2, 4, 4})};
  CHECK(Message().empty());
}

TEST_CASE_FIXTURE(Fixture, "a transposed convolution is UpSampling, or else Deconvolution") {
  model.inputs = {Value("x", {-1, 2, 4, 4})};
  model.initializers["w"] = Zeros({2, 1, 4, 4});
  const onnx::Attributes plain = {{"strides", std::vector<int64_t>{2, 2}},
                                  {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                  {"group", int64_t{2}}};
  model.nodes = {Node("ConvTranspose", {"x", "w"}, "y", plain)};
  CHECK(Operators() == Ops{"UpSampling"});
  model.nodes[0].attributes["dilations"] = std::vector<int64_t>{2, 2};
  CHECK(Operators() == Ops{"Deconvolution"});
  // One cell more is cut off on the near side than on the far one.
  model.nodes[0].attributes = plain;
  model.nodes[0].attributes["pads"] = std::vector<int64_t>{1, 1, 0, 1};
  CHECK(Operators() == Ops{"Deconvolution"});
  CHECK(Import().layers[0].params[4] == std::pair<std::string, std::string>("adj", "(1, 0)"));
  const std::string refused = "ConvTranspose 'y_node' cannot be imported: ";
  model.nodes[0].attributes["pads"] = std::vector<int64_t>{0, 1, 1, 1};
  CHECK(Operators() == Ops{"Deconvolution", "slice_axis"});
  model.nodes[0].attributes = plain;
  model.nodes[0].attributes["output_shape"] = std::vector<int64_t>{20, 20};
  CHECK(Message() == refused + "its output is 10 cells longer than its windows reach");
}

TEST_CASE_FIXTURE(Fixture, "lengths and steps that overflow are refused") {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const int64_t least = std::numeric_limits<int64_t>::min();
  model.initializers["parts"] = Tensor::Ints({3}, {huge, huge, 6});
  model.nodes = {{"Split", "split", "", {"x", "parts"}, {"a", "b", "y"}, {{"axis", int64_t{1}}}}};
  CHECK(Message() == "Split 'split': its parts do not add up to 4");
  model.initializers = {{"data", Tensor::Ints({3}, {1, 2, 3})},
                        {"zero", Tensor::Ints({1}, {0})},
                        {"step", Tensor::Ints({1}, {least})}};
  model.nodes = {Node("Slice", {"data", "zero", "zero", "zero", "step"}, "a"),
                 Node("Add", {"x", "a"}, "y")};
  CHECK(Message().find("a step is zero or too large") != std::string::npos);
  CHECK(!MessageOf([] { Tensor{ElementType::kFloat, {0, huge}, ""}.Size(); }).empty());
}

TEST_CASE_FIXTURE(Fixture, "a shape computed from the batch is any batch") {
  // x.view(x.size(0), -1) as an exporter traces it.
  model.inputs = {Value("x", {-1, 2, 3, 4})};
  model.initializers["zero"] = Tensor::Ints({}, {0});
  model.initializers["rest"] = Tensor::Ints({1}, {-1});
  model.nodes = {Node("Shape", {"x"}, "shape"),
                 Node("Gather", {"shape", "zero"}, "batch", {{"axis", int64_t{0}}}),
                 Node("Unsqueeze", {"batch", "axes"}, "batches"),
                 Node("Concat", {"batches", "rest"}, "sizes", {{"axis", int64_t{0}}}),
                 Node("Reshape", {"x", "sizes"}, "y")};
  model.initializers["axes"] = Tensor::Ints({1}, {0});
  const onnx::ImportedNet net = Import();
  REQUIRE(net.layers.size() == 1);
  CHECK(net.layers[0].params == Kwargs{{"shape", "(0, 24)"}});
}

TEST_CASE_FIXTURE(Fixture, "an array that is repeated for every example goes out and comes back") {
  model.inputs = {Value("x", {-1, 3, 4})};
  model.initializers = {{"token", Tensor::Floats({1, 1, 4}, {1, 2, 3, 4})},
                        {"zero", Tensor::Ints({1}, {0})},
                        {"one", Tensor::Ints({1}, {1})},
                        {"rest", Tensor::Ints({2}, {1, 4})}};
  model.nodes = {Node("Shape", {"x"}, "shape"), Node("Slice", {"shape", "zero", "one"}, "batch"),
                 Node("Concat", {"batch", "rest"}, "sizes", {{"axis", int64_t{0}}}),
                 Node("Expand", {"token", "sizes"}, "tokens"),
                 Node("Concat", {"tokens", "x"}, "y", {{"axis", int64_t{1}}})};
  CHECK(Operators() == Ops{"broadcast_like", "Concat"});
  const onnx::ImportedNet net = Import();
  const std::map<std::string, NDArray> args = onnx::ArraysOf(net, *runtime), none;
  onnx::ExportRequest request;
  request.symbol = onnx::ToSymbol(net, operators);
  request.inputs = {{"x", TShape{3, 4}}};
  request.args = &args;
  request.auxs = &none;
  model = onnx::ExportModel(request);
  CHECK(Operators() == Ops{"broadcast_like", "Concat"});
  CHECK(Import().arrays.at("token").ToFloats() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE_FIXTURE(Fixture, "a batch of fixed size becomes one of any size") {
  model.inputs = {Value("x", {1, 2, 3, 4})};
  model.initializers["sizes"] = Tensor::Ints({2}, {1, 24});
  model.nodes = {Node("Reshape", {"x", "sizes"}, "y")};
  CHECK(Import().layers[0].params == Kwargs{{"shape", "(0, 24)"}});
}

TEST_CASE_FIXTURE(Fixture, "a convolution takes asymmetric padding") {
  model.inputs = {Value("x", {-1, 2, 8, 8})};
  model.initializers["w"] = Zeros({3, 2, 3, 3});
  model.nodes = {
      Node("Conv", {"x", "w"}, "y",
           {{"strides", std::vector<int64_t>{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}})};
  CHECK(Operators() == Ops{"Convolution"});
  CHECK(Import().layers[0].params[3] == std::pair<std::string, std::string>("pad", "(0, 0, 1, 1)"));
}

TEST_CASE_FIXTURE(Fixture, "padding that would cut the data is refused") {
  model.initializers["w"] = Zeros({3, 2, 1, 1});
  for (const std::string automatic : {"SAME_UPPER", "SAME_LOWER"}) {
    model.nodes = {Node("Conv", {"x", "w"}, "y",
                        {{"strides", std::vector<int64_t>{3, 3}}, {"auto_pad", automatic}})};
    model.inputs = {Value("x", {-1, 2, 5, 4})};  // one cell at the end is not needed; or none
    CHECK(Message().empty());
    model.inputs = {Value("x", {-1, 2, 5, 6})};
    CHECK(Message() == "Conv 'y_node' cannot be imported: auto_pad = " + automatic +
                           " has no equivalent where windows do not need 2 cells of an axis");
  }
}

TEST_CASE_FIXTURE(Fixture, "numbers are numbers, arrays become variables") {
  model.initializers["two"] = Tensor::Scalar(2);
  model.initializers["scale"] = Tensor::Floats({4}, {1, 2, 3, 4});
  model.nodes = {Node("Div", {"two", "x"}, "a"), Node("Mul", {"a", "scale"}, "b"),
                 Node("Pow", {"b", "two"}, "y")};
  const onnx::ImportedNet net = Import();
  CHECK(Operators() == Ops{"_rdiv_scalar", "broadcast_mul", "_power_scalar"});
  REQUIRE(net.variables.size() == 1);
  CHECK(net.variables[0].shape == TShape{1, 4});
  CHECK(onnx::ToSymbol(net, operators).ListArguments() == std::vector<std::string>{"x", "scale"});
}

TEST_CASE_FIXTURE(Fixture, "integers are divided as integers") {
  model.inputs = {{"x", ElementType::kInt64, true, {-1, 4}, {}}};
  model.initializers = {{"two", Tensor::Ints({}, {2})}, {"more", Tensor::Ints({4}, {2, -2, 3, 3})}};
  const std::vector<double> x{7, -7, 8, 9, -8, 5, -1, 2};
  model.nodes = {Node("Div", {"x", "two"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{3, -3, 4, 4, -4, 2, 0, 1});
  model.nodes = {Node("Div", {"x", "more"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{3, 3, 2, 3, -4, -2, 0, 0});
  // Their type follows them through other operators.
  model.initializers["order"] = Tensor::Ints({1}, {0});
  model.nodes = {Node("Neg", {"x"}, "a"), Node("Unsqueeze", {"a", "order"}, "b"),
                 Node("Squeeze", {"b", "order"}, "c"), Node("Div", {"c", "two"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{-3, 3, -4, -4, 4, -2, 0, -1});
  model.nodes = {Node("Mod", {"x", "more"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{1, -1, 2, 0, 0, -1, 2, 2});
  model.nodes = {Node("Mod", {"x", "more"}, "y", {{"fmod", int64_t{1}}})};
  CHECK(Outputs(*this, x) == std::vector<double>{1, -1, 2, 0, 0, 1, -1, 2});
  // Numbers with fractions are divided as such.
  model.nodes = {Node("Cast", {"x"}, "a", {{"to", int64_t{1}}}),
                 Node("Cast", {"two"}, "b", {{"to", int64_t{1}}}), Node("Div", {"a", "b"}, "y")};
  CHECK(Outputs(*this, x)[0] == 3.5);
  model.inputs[0].type = ElementType::kFloat;
  model.nodes = {Node("Cast", {"x"}, "a", {{"to", int64_t{7}}}), Node("Div", {"a", "two"}, "y")};
  CHECK(Outputs(*this, x)[0] == 3);
}

TEST_CASE_FIXTURE(Fixture, "negative indices count from the end") {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7};
  const auto along = [](int64_t axis) { return onnx::Attributes{{"axis", axis}}; };
  const auto gather = [&](std::vector<int64_t> dims, const std::vector<int64_t>& indices) {
    model.initializers["i"] = Tensor::Ints(std::move(dims), indices);
    model.nodes = {Node("Gather", {"x", "i"}, "y", along(1))};
    return Outputs(*this, x);
  };
  CHECK(gather({}, {-1}) == std::vector<double>{3, 7});
  CHECK(gather({2}, {-3, -2}) == std::vector<double>{1, 2, 5, 6});
  CHECK(Operators() == Ops{"slice_axis"});
  CHECK(gather({2}, {-1, 1}) == std::vector<double>{3, 1, 7, 5});
  CHECK(Operators() == Ops{"slice"});
  CHECK(gather({3}, {-1, 0, 1}) == std::vector<double>{3, 0, 1, 7, 4, 5});
  CHECK(Operators() == Ops{"take"});
  CHECK(Import().variables[0].fixed);  // training leaves indices alone
  CHECK(gather({1, 2}, {0, 2}) == std::vector<double>{0, 2, 4, 6});
  model.initializers["i"] = Tensor::Ints({1}, {4});
  CHECK(Message() == "Gather 'y_node': index 4 is out of range for 4");

  // Rows of a table at computed indices.
  model.initializers = {{"table", Tensor::Floats({3, 1}, {10, 20, 30})},
                        {"three", Tensor::Scalar(3)}};
  model.nodes = {Node("Sub", {"x", "three"}, "i"), Node("Gather", {"table", "i"}, "y")};
  CHECK(Outputs(*this, {0, 1, 2, 3, 4, 5, 3, 3}) ==
        std::vector<double>{10, 20, 30, 10, 20, 30, 10, 10});

  model.initializers = {{"from", Tensor::Ints({1}, {-3})},
                        {"to", Tensor::Ints({1}, {-1})},
                        {"far", Tensor::Ints({1}, {-100})},
                        {"axis", Tensor::Ints({1}, {-1})},
                        {"back", Tensor::Ints({1}, {-2})}};
  model.nodes = {Node("Slice", {"x", "from", "to", "axis"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{1, 2, 5, 6});
  model.nodes = {Node("Slice", {"x", "to", "far", "axis", "back"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{3, 1, 7, 5});
  model.nodes = {Node("Slice", {"x", "far", "to", "axis"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{0, 1, 2, 4, 5, 6});

  model.initializers = {{"points", Tensor::Ints({3, 2}, {0, -1, 1, 0, -1, -2})}};
  model.nodes = {Node("GatherND", {"x", "points"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{3, 4, 6});
  model.nodes[0].attributes["batch_dims"] = int64_t{1};
  CHECK(Message() ==
        "GatherND 'y_node' cannot be imported: its data and indices differ along the axis 0");
}

TEST_CASE_FIXTURE(Fixture, "GatherND takes elements of every example at its own indices") {
  model.initializers["end"] = Tensor::Ints({1}, {2});
  model.nodes = {Node("Cast", {"x"}, "numbers", {{"to", int64_t{7}}}),
                 Node("Unsqueeze", {"numbers", "end"}, "points"),
                 Node("GatherND", {"x", "points"}, "y", {{"batch_dims", int64_t{1}}})};
  CHECK(Outputs(*this, {3, 0, -1, 1, 2, 2, 0, -4}) == std::vector<double>{1, 3, 1, 0, 0, 0, 2, 2});
  model.nodes[2].attributes["batch_dims"] = int64_t{2};
  CHECK(Message() == "GatherND 'y_node': batch_dims 2 is out of range");
}

TEST_CASE_FIXTURE(Fixture, "ScatterElements writes elements of columns") {
  const double infinity = std::numeric_limits<double>::infinity();
  model.initializers = {{"two", Tensor::Ints({1}, {2})},
                        {"least", Tensor::Scalar(-std::numeric_limits<float>::infinity())},
                        {"four", Tensor::Ints({}, {4})}};
  const ModelNode top{"TopK", "top", "", {"x", "two"}, {"values", "places"}, {}};
  model.nodes = {top, Node("Neg", {"values"}, "updates"),
                 Node("ScatterElements", {"x", "places", "updates"}, "y", {{"axis", int64_t{-1}}})};
  const std::vector<double> x{3, 0, -1, 1, 2, 2.5, 0, -4};
  CHECK(Outputs(*this, x) == std::vector<double>{-3, 0, -1, -1, -2, -2.5, 0, -4});
  model.nodes[2].attributes["reduction"] = std::string("add");
  CHECK(Outputs(*this, x) == std::vector<double>{0, 0, -1, 0, 0, 0, 0, -4});
  model.nodes[2].attributes["reduction"] = std::string("mul");
  CHECK(Message() ==
        "ScatterElements 'y_node' cannot be imported: reduction = mul has no equivalent");
  // Indices from the end; updates that no product may see.
  model.nodes = {top, Node("Sub", {"places", "four"}, "back"),
                 Node("Mul", {"values", "least"}, "updates"),
                 Node("ScatterElements", {"x", "back", "updates"}, "y", {{"axis", int64_t{1}}})};
  CHECK(Outputs(*this, x) ==
        std::vector<double>{-infinity, 0, -1, -infinity, -infinity, -infinity, 0, -4});

  model.inputs = {Value("x", {-1, 2, 2})};
  model.initializers = {{"one", Tensor::Ints({1}, {1})}};
  model.nodes = {{"TopK", "top", "", {"x", "one"}, {"values", "places"}, {{"axis", int64_t{1}}}},
                 Node("Neg", {"values"}, "updates"),
                 Node("ScatterElements", {"x", "places", "updates"}, "y", {{"axis", int64_t{1}}})};
  CHECK(Outputs(*this, {1, 4, 3, 2, 5, 6, 7, 8}) ==
        std::vector<double>{1, -4, -3, 2, 5, 6, -7, -8});
  model.nodes[2].attributes["axis"] = int64_t{2};
  CHECK(Message() ==
        "ScatterElements 'y_node' cannot be imported: its indices [4, 1, 2] leave columns of "
        "[4, 2, 2] out");
}

TEST_CASE_FIXTURE(Fixture, "the windows of a maximum may have gaps") {
  model.inputs = {Value("x", {-1, 1, 6})};
  model.nodes = {Node("MaxPool", {"x"}, "y",
                      {{"kernel_shape", std::vector<int64_t>{3}},
                       {"dilations", std::vector<int64_t>{2}},
                       {"strides", std::vector<int64_t>{2}},
                       {"pads", std::vector<int64_t>{1, 1}}})};
  const std::vector<double> x{9, -3, 9, -2, 9, -5, 0, 4, 0, 1, 0, 2};
  CHECK(Outputs(*this, x) == std::vector<double>{-2, -2, 4, 4});
  model.nodes[0].attributes["ceil_mode"] = int64_t{1};
  CHECK(Outputs(*this, x) == std::vector<double>{-2, -2, -2, 4, 4, 2});

  model.inputs = {Value("x", {-1, 1, 3, 2})};
  model.nodes = {Node(
      "MaxPool", {"x"}, "y",
      {{"kernel_shape", std::vector<int64_t>{2, 1}}, {"dilations", std::vector<int64_t>{2, 1}}})};
  CHECK(Outputs(*this, {1, 2, 9, 9, 3, 1, 4, 5, 9, 9, 0, 6}) == std::vector<double>{3, 2, 4, 6});
  model.nodes[0].op = "AveragePool";
  CHECK(Outputs(*this, {1, 2, 9, 9, 3, 1, 4, 5, 9, 9, 0, 6}) ==
        std::vector<double>{2, 1.5, 2, 5.5});
  model.nodes[0].op = "LpPool";
  CHECK(Message() ==
        "LpPool 'y_node' cannot be imported: dilated windows have an equivalent for maxima and "
        "means alone");
}

TEST_CASE_FIXTURE(Fixture, "ScatterND writes into an array, computed or while the file is read") {
  model.initializers = {{"base", Tensor::Floats({3, 4}, std::vector<float>(12, 1.0f))},
                        {"points", Tensor::Ints({2, 1}, {2, -3})},
                        {"rows", Tensor::Floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}};
  model.nodes = {Node("ScatterND", {"base", "points", "rows"}, "a"),
                 Node("ReduceSum", {"a", "zero"}, "b", {{"keepdims", int64_t{0}}}),
                 Node("Mul", {"x", "b"}, "y")};
  model.initializers["zero"] = Tensor::Ints({1}, {0});
  const std::vector<double> x{1, 1, 1, 1, 2, 2, 2, 2};
  CHECK(Outputs(*this, x) == std::vector<double>{7, 9, 11, 13, 14, 18, 22, 26});
  CHECK(Import().arrays.size() == 1);  // the array that was written
  // Updates that are computed, here from the data of the whole batch of fixed size.
  model.inputs = {Value("x", {2, 4})};
  model.nodes = {Node("Neg", {"rows"}, "negative"), Node("ReduceMean", {"x"}, "m"),
                 Node("Mul", {"negative", "m"}, "u"),
                 Node("ScatterND", {"base", "points", "u"}, "y")};
  CHECK(Message().find("it reduces the batch axis") != std::string::npos);
  model.nodes = {Node("ScatterND", {"x", "points", "rows"}, "y")};
  CHECK(Message() ==
        "ScatterND 'y_node' cannot be imported: its data [2, 4] depend on the size of the batch");
}

TEST_CASE_FIXTURE(Fixture, "Einsum is a batch of matrix products") {
  model.inputs = {Value("x", {-1, 2, 3})};
  model.nodes = {
      Node("Einsum", {"x", "x"}, "y", {{"equation", std::string("b i d, b j d -> b j i")}})};
  std::vector<double> x(12);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5);
  std::vector<double> wanted;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t j = 0; j < 2; ++j) {
      for (size_t i = 0; i < 2; ++i) {
        double sum = 0;
        for (size_t d = 0; d < 3; ++d) sum += x[b * 6 + i * 3 + d] * x[b * 6 + j * 3 + d];
        wanted.push_back(sum);
      }
    }
  }
  CHECK(Outputs(*this, x) == wanted);
  model.initializers["w"] = Tensor::Floats({3, 2}, {1, 2, 3, 4, 5, 6});
  model.nodes = {Node("Einsum", {"x", "w"}, "y", {{"equation", std::string("bij,jk->kbi")}})};
  wanted.clear();
  for (size_t k = 0; k < 2; ++k) {
    for (size_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (size_t j = 0; j < 3; ++j) sum += x[row * 3 + j] * static_cast<double>(1 + 2 * j + k);
      wanted.push_back(sum);
    }
  }
  CHECK(Outputs(*this, x) == wanted);
  const auto message = [this](const std::string& equation) {
    model.nodes[0].attributes["equation"] = equation;
    return Message();
  };
  const std::string refused = "Einsum 'y_node' cannot be imported: ";
  CHECK(message("bij->bi") ==
        "Einsum 'y_node': its equation 'bij->bi' does not have its 2 factors");
  CHECK(message("bij,jk->bb") == refused + "its result has the axis b twice");
  CHECK(message("bij,jk->bikl") == "Einsum 'y_node': no factor has the axis l");
}

TEST_CASE_FIXTURE(Fixture, "a softmax at the end is the loss of a classifier") {
  model.nodes = {Node("Softmax", {"x"}, "y")};
  CHECK(Operators() == Ops{"SoftmaxOutput"});
  CHECK(onnx::ImportModel(model, operators, {.loss = false}).layers[0].op == "softmax");
  model.nodes = {Node("Softmax", {"x"}, "y", {{"axis", int64_t{0}}})};
  CHECK(Operators() == Ops{"softmax"});
  model.nodes = {Node("Softmax", {"x"}, "y"), Node("Relu", {"y"}, "z")};
  model.outputs.push_back(Value("z", {-1, 4}));
  CHECK(Operators() == Ops{"softmax", "Activation"});
}

}  // namespace
}  // namespace mxtrain::test
