// SPDX-License-Identifier: Apache-2.0
// What follows from the arrays of a file and the shapes of its inputs: computed while the file is
// read, in the types of the file.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

Tensor Ints32(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  return {ElementType::kInt32, std::move(dims),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)};
}
Tensor Truth(bool value) {
  return {ElementType::kBool, {}, std::string(1, value ? '\1' : '\0')};
}
onnx::Attributes Axis(int64_t axis) {
  return {{"axis", axis}};
}

// x times what a file computes of its own arrays.
struct ProductFixture : Fixture {
  ProductFixture() {
    model.initializers["a"] = RampOf({4, 3});
    a = Ramp(12);
  }
  // For x = identity matrix, so that the outputs are the weight.
  std::vector<double> Weight(std::vector<ModelNode> nodes) {
    model.nodes = std::move(nodes);
    model.nodes.push_back(Node("MatMul", {"x", "w"}, "y"));
    const std::vector<double> identity{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    return OutputsOf(*this, 4, {{"x", identity}})[0];
  }
  std::vector<double> a;
};

TEST_CASE_FIXTURE(Fixture, "shapes in int32 are joined as int32") {
  // Flatten as tf2onnx writes it.
  model.inputs = {Value("x", {-1, 2, 3, 4})};
  model.initializers = {{"zero", Tensor::Ints({1}, {0})},
                        {"one", Tensor::Ints({1}, {1})},
                        {"rest", Ints32({1}, {24})}};
  model.nodes = {Node("Shape", {"x"}, "shape"),
                 Node("Cast", {"shape"}, "lengths", CastTo(ElementType::kInt32)),
                 Node("Slice", {"lengths", "zero", "one"}, "batch"),
                 Node("Concat", {"batch", "rest"}, "sizes", Axis(0)),
                 Node("Cast", {"sizes"}, "wide", CastTo(ElementType::kInt64)),
                 Node("Reshape", {"x", "wide"}, "y")};
  CHECK(Import().layers[0].params == Kwargs{{"shape", "(0, 24)"}});
  model.initializers["rest"] = Tensor::Ints({1}, {24});
  CHECK(Message() == "Concat 'sizes_node': arrays of different ranks or types are joined");
}

TEST_CASE_FIXTURE(Fixture, "integers have the range of their type") {
  model.initializers = {{"a", Ints32({1}, {2'000'000'000})},
                        {"far", Tensor::Ints({1}, {(int64_t{1} << 32) + 3})},
                        {"zero", Tensor::Ints({1}, {0})},
                        {"one", Tensor::Ints({1}, {1})}};
  model.nodes = {Node("Add", {"a", "a"}, "end"), Node("Slice", {"x", "zero", "end", "one"}, "y")};
  CHECK(Message() == "Add 'end_node': a number is too large");
  // A cast keeps the bits that the type has.
  model.nodes[0] = Node("Cast", {"far"}, "end", CastTo(ElementType::kInt32));
  CHECK(onnx::ToSymbol(Import(), operators).InferShape({{"x", TShape{2, 4}}}).outputs[0][1] == 3);
}

TEST_CASE_FIXTURE(Fixture, "padding that is computed from the shape and cut at 0") {
  // timm's Conv2dSame: max((ceil(9 / 2) - 1) * 2 + 3 - 9, 0) cells.
  model.inputs = {Value("x", {-1, 1, 9})};
  const auto number = [](int64_t value) { return Tensor::Ints({}, {value}); };
  model.initializers = {{"two", number(2)},
                        {"one", number(1)},
                        {"three", number(3)},
                        {"zero", number(0)},
                        {"axis", number(2)},
                        {"w", RampOf({1, 1, 3})},
                        {"first", Tensor::Ints({1}, {0})}};
  model.nodes = {Node("Shape", {"x"}, "shape"),
                 Node("Gather", {"shape", "axis"}, "length"),
                 Node("Add", {"length", "one"}, "more"),
                 Node("Div", {"more", "two"}, "out"),
                 Node("Sub", {"out", "one"}, "steps"),
                 Node("Mul", {"steps", "two"}, "cells"),
                 Node("Add", {"cells", "three"}, "span"),
                 Node("Sub", {"span", "length"}, "missing"),
                 Node("Clip", {"missing", "zero"}, "pad"),
                 Node("Div", {"pad", "two"}, "before"),
                 Node("Sub", {"pad", "before"}, "behind"),
                 Node("Unsqueeze", {"before", "first"}, "p"),
                 Node("Unsqueeze", {"behind", "first"}, "q"),
                 Node("Concat", {"two0", "p", "two0", "q"}, "pads", Axis(0)),
                 Node("Pad", {"x", "pads"}, "padded"),
                 Node("Conv", {"padded", "w"}, "y", {{"strides", std::vector<int64_t>{2}}})};
  model.initializers["two0"] = Tensor::Ints({2}, {0, 0});
  const std::vector<double> x = Ramp(9);
  std::vector<double> wanted;
  for (int i = 0; i < 5; ++i) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) {
      const int at = 2 * i + k - 1;
      if (at >= 0 && at < 9) sum += x[static_cast<size_t>(at)] * Ramp(3)[static_cast<size_t>(k)];
    }
    wanted.push_back(sum);
  }
  CHECK(OutputsOf(*this, 1, {{"x", x}})[0] == wanted);
}

TEST_CASE_FIXTURE(ProductFixture,
                  "a weight that is computed of arrays, by operators of the library") {
  model.initializers["b"] = RampOf({3, 3});
  const std::vector<double> b = Ramp(9);
  std::vector<double> wanted;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += a[i * 3 + k] * b[k * 3 + j];
      wanted.push_back(sum);
    }
  }
  CHECK(Weight({Node("MatMul", {"a", "b"}, "w")}) == wanted);
  // Nothing of its parts is left to train.
  CHECK(Import().arrays.size() == 1);
  // Of more axes, as a table of positions goes through a layer.
  model.initializers["wide"] = RampOf({1, 2, 2, 3});
  model.initializers["flat"] = Tensor::Ints({2}, {4, 3});
  CHECK(Weight({Node("MatMul", {"wide", "b"}, "product"),
                Node("Reshape", {"product", "flat"}, "w")}) == wanted);
  wanted.clear();
  for (const double x : a) wanted.push_back(1 / (1 + std::exp(-x)));
  const std::vector<double> sigmoid = Weight({Node("Sigmoid", {"a"}, "w")});
  REQUIRE(sigmoid.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    CHECK(sigmoid[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

TEST_CASE_FIXTURE(ProductFixture, "numbers without axes stay without when layers compute them") {
  model.initializers["s"] = Tensor::Scalar(0);
  model.initializers["zero"] = Tensor::Ints({1}, {0});
  model.initializers["three"] = Tensor::Ints({1}, {3});
  // sigmoid(0) of no axes is unsqueezed to one axis, tiled, and so scales the columns.
  const std::vector<double> halves =
      Weight({Node("Sigmoid", {"s"}, "half"), Node("Unsqueeze", {"half", "zero"}, "one"),
              Node("Tile", {"one", "three"}, "row"), Node("Mul", {"a", "row"}, "w"),
              Node("Constant", {}, "unread", {{"value", Truth(true)}})});
  for (size_t i = 0; i < a.size(); ++i) CHECK(halves[i] == a[i] / 2);
}

TEST_CASE_FIXTURE(ProductFixture, "parts of an array are arrays") {
  model.initializers["both"] = RampOf({4, 7});
  model.initializers["sizes"] = Tensor::Ints({2}, {4, 3});
  const ModelNode split{"Split", "split", "", {"both", "sizes"}, {"left", "w"}, Axis(1)};
  const std::vector<double> all = Ramp(28);
  std::vector<double> wanted;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 4; j < 7; ++j) wanted.push_back(all[i * 7 + j]);
  }
  CHECK(Weight({split}) == wanted);
  model.initializers["sizes"] = Tensor::Ints({2}, {5, 3});
  CHECK(Message() == "Split 'split': its parts do not add up to its data");
}

TEST_CASE_FIXTURE(ProductFixture, "sums, means and extremes of arrays, integers exactly") {
  std::vector<double> wanted(12);
  const auto axes = [](int64_t axis) {
    return onnx::Attributes{{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}};
  };
  for (size_t j = 0; j < 3; ++j) {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) sum += a[i * 3 + j];
    for (size_t i = 0; i < 4; ++i) wanted[i * 3 + j] = a[i * 3 + j] - sum / 4;
  }
  model.opset = 13;
  CHECK(Weight({Node("ReduceMean", {"a"}, "m", axes(0)), Node("Sub", {"a", "m"}, "w")}) == wanted);
  for (size_t i = 0; i < 4; ++i) {
    const double most = std::max({a[i * 3], a[i * 3 + 1], a[i * 3 + 2]});
    for (size_t j = 0; j < 3; ++j) wanted[i * 3 + j] = a[i * 3 + j] - most;
  }
  CHECK(Weight({Node("ReduceMax", {"a"}, "m", axes(-1)), Node("Sub", {"a", "m"}, "w")}) == wanted);
  // 2^24 + 1 of int64 is no float32 number.
  model.initializers["odd"] = Tensor::Ints({2}, {(1 << 24) + 1, -(1 << 24)});
  model.initializers["start"] = Tensor::Ints({1}, {0});
  model.initializers["axis"] = Tensor::Ints({1}, {1});
  model.nodes = {Node("ReduceSum", {"odd"}, "end", {{"keepdims", int64_t{1}}}),
                 Node("Slice", {"x", "start", "end", "axis"}, "y")};
  CHECK(onnx::ToSymbol(Import(), operators).InferShape({{"x", TShape{2, 4}}}).outputs[0][1] == 1);
}

TEST_CASE_FIXTURE(Fixture, "weights are standardized by a batch norm of their own statistics") {
  model.inputs = {Value("x", {-1, 2, 3})};
  model.initializers = {{"v", RampOf({1, 4, 6})}, {"scale", RampOf({4})},
                        {"shift", RampOf({4})},   {"zeros", Zeros({4})},
                        {"ones", RampOf({4})},    {"shape", Tensor::Ints({3}, {4, 2, 3})}};
  const ModelNode norm{"BatchNormalization",
                       "norm",
                       "",
                       {"v", "scale", "shift", "zeros", "ones"},
                       {"u", "mean", "variance"},
                       {{"training_mode", int64_t{1}}, {"epsilon", 0.125f}}};
  model.nodes = {norm, Node("Reshape", {"u", "shape"}, "w"), Node("Conv", {"x", "w"}, "y")};
  const std::vector<double> v = Ramp(24), x = Ramp(6);
  const std::vector<double> y = OutputsOf(*this, 1, {{"x", x}})[0];
  REQUIRE(y.size() == 4);
  for (size_t filter = 0; filter < 4; ++filter) {
    double mean = 0, variance = 0, sum = 0;
    for (size_t i = 0; i < 6; ++i) mean += v[filter * 6 + i] / 6;
    for (size_t i = 0; i < 6; ++i) variance += std::pow(v[filter * 6 + i] - mean, 2) / 6;
    const double scale = Ramp(4)[filter];
    for (size_t i = 0; i < 6; ++i)
      sum += x[i] * ((v[filter * 6 + i] - mean) / std::sqrt(variance + 0.125) * scale + scale);
    CHECK(y[filter] == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE_FIXTURE(Fixture, "an array above 2^20 elements is computed, up to a limit") {
  model.inputs = {Value("x", {-1, 1100})};
  model.initializers["shape"] = Tensor::Ints({2}, {1100, 1000});
  model.nodes = {Node("ConstantOfShape", {"shape"}, "w", {{"value", Tensor::Floats({1}, {0.5f})}}),
                 Node("MatMul", {"x", "w"}, "y")};
  const std::vector<double> y = OutputsOf(*this, 1, {{"x", std::vector<double>(1100, 0.25)}})[0];
  CHECK(y == std::vector<double>(1000, 137.5));
  const std::string message = MessageOf(
      [this] { onnx::ImportModel(model, operators, {.most_computed_bytes = int64_t{1} << 20}); });
  CHECK(message ==
        "ConstantOfShape 'w_node': its result has 1100000 elements: the model computes too much "
        "from constants");
}

TEST_CASE_FIXTURE(Fixture, "what has the length of the batch is repeated for every example") {
  model.inputs = {Value("x", {-1, 2, 4})};
  model.initializers = {{"first", Tensor::Ints({1}, {0})}, {"one", Tensor::Ints({1}, {1})},
                        {"p", RampOf({1, 2, 4})},          {"row", RampOf({2, 4})},
                        {"two", Tensor::Ints({1}, {2})},   {"four", Tensor::Ints({1}, {4})}};
  const std::vector<ModelNode> batch{Node("Shape", {"x"}, "shape"),
                                     Node("Gather", {"shape", "first"}, "n", Axis(0))};
  const auto with = [&](std::vector<ModelNode> nodes) {
    model.nodes = batch;
    model.nodes.insert(model.nodes.end(), nodes.begin(), nodes.end());
  };
  const std::vector<double> x = Ramp(24), p = Ramp(8);
  std::vector<double> zeros, sum, tiled;
  for (size_t i = 0; i < 24; ++i) sum.push_back(x[i] + p[i % 8]);
  for (size_t i = 0; i < 24; ++i) {
    zeros.push_back(x[i]);
    if (i % 8 == 7) zeros.insert(zeros.end(), 8, 0.0);
  }
  // torch.zeros_like.
  with({Node("ConstantOfShape", {"shape"}, "z"), Node("Concat", {"x", "z"}, "y", Axis(1))});
  CHECK(OutputsOf(*this, 3, {{"x", x}})[0] == zeros);
  with({Node("Concat", {"n", "one", "one"}, "times", Axis(0)), Node("Tile", {"p", "times"}, "pp"),
        Node("Add", {"x", "pp"}, "y")});
  CHECK(OutputsOf(*this, 3, {{"x", x}})[0] == sum);
  CHECK(Import().arrays.at("p").ToFloats().size() == 8);  // and is trained
  // Two rows for every example, and then an axis of their own.
  with({Node("Concat", {"n", "one"}, "times", Axis(0)), Node("Tile", {"row", "times"}, "rows"),
        Node("Concat", {"n", "two", "four"}, "sizes", Axis(0)),
        Node("Reshape", {"rows", "sizes"}, "pp"), Node("Add", {"x", "pp"}, "y")});
  CHECK(OutputsOf(*this, 3, {{"x", x}})[0] == sum);
  // Numbers that are made for one batch, but not alike for all examples.
  model.initializers["zero"] = Tensor::Ints({}, {0});
  model.initializers["step"] = Tensor::Ints({}, {1});
  with({Node("Squeeze", {"n", "first"}, "count"), Node("Range", {"zero", "count", "step"}, "r"),
        Node("Cast", {"r"}, "numbers", CastTo(ElementType::kFloat)),
        Node("Reshape", {"numbers", "shape3"}, "column"), Node("Add", {"x", "column"}, "y")});
  model.initializers["shape3"] = Tensor::Ints({3}, {-1, 1, 1});
  CHECK(Message() ==
        "Add 'y_node' cannot be imported: its input 'column' must be an array of the file, but "
        "depends on the size of the batch");
}

TEST_CASE_FIXTURE(Fixture, "layers do not compute what would fill the memory") {
  model.nodes = {Node("MatMul", {"column", "row"}, "w"), Node("MatMul", {"x", "w"}, "y")};
  model.initializers = {{"column", RampOf({3000, 1})}, {"row", RampOf({1, 3000})}};
  CHECK(MessageOf([this] {
          onnx::ImportModel(model, operators, {.most_computed_bytes = int64_t{1} << 20});
        }) ==
        "MatMul 'w_node' cannot be imported: its results are too large: the model computes too "
        "much from constants");
}

// --- branches ---

TEST_CASE_FIXTURE(Fixture, "the branch of a known condition stands in its place") {
  const auto branch = [](const std::string& op, const std::string& input) {
    auto graph = std::make_shared<onnx::ModelGraph>();
    graph->nodes = {Node(op, {input}, "h"), Node("Mul", {"h", "factor"}, "r")};
    graph->initializers["factor"] = Tensor::Floats({4}, {1, 2, 4, 8});
    graph->outputs = {"r"};
    return std::shared_ptr<const onnx::ModelGraph>(graph);
  };
  const onnx::Attributes branches{{"then_branch", branch("Neg", "x")},
                                  {"else_branch", branch("Abs", "x")}};
  const std::vector<double> x{1, -2, 3, -4, 5, -6, 7, -8};
  for (const bool truth : {true, false}) {
    model.initializers["condition"] = Truth(truth);
    // One after the other; the names in the branches are the same.
    model.nodes = {Node("If", {"condition"}, "a", branches),
                   Node("If", {"condition"}, "b", branches), Node("Add", {"a", "b"}, "y")};
    const std::vector<double> y = Outputs(*this, x);
    for (size_t i = 0; i < 8; ++i) {
      const double scale = static_cast<double>(2 << (i % 4));
      CHECK(y[i] == scale * (truth ? -x[i] : std::abs(x[i])));
    }
  }
  // A condition of shapes: whether there are 4 columns.
  model.initializers["one"] = Tensor::Ints({}, {1});
  model.initializers["four"] = Tensor::Ints({}, {4});
  model.nodes = {Node("Shape", {"x"}, "shape"), Node("Gather", {"shape", "one"}, "columns"),
                 Node("Equal", {"columns", "four"}, "is"), Node("If", {"is"}, "y", branches)};
  CHECK(Outputs(*this, x)[1] == 4);
  model.nodes = {Node("Cast", {"x"}, "truth", CastTo(ElementType::kBool)),
                 Node("If", {"truth"}, "y", branches)};
  CHECK(Message() == "If 'y_node' cannot be imported: its condition depends on the data");
}

}  // namespace
}  // namespace mxtrain::test
