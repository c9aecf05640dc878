// SPDX-License-Identifier: Apache-2.0
// Files as other programs write them, which once were refused or read wrongly.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

// --- arrays that layers take in another shape than usual ---

TEST_CASE_FIXTURE(Fixture, "GroupNormalization has a scale for every channel, or for every group") {
  model.inputs = {Value("x", {-1, 4, 3})};
  model.nodes = {Node("GroupNormalization", {"x", "scale", "bias"}, "y",
                      {{"num_groups", int64_t{2}}, {"epsilon", 0.125f}})};
  const std::vector<double> x = Ramp(24);
  for (const int64_t count : {int64_t{4}, int64_t{2}}) {
    model.opset = count == 4 ? 21 : 18;
    model.initializers = {{"scale", RampOf({count})}, {"bias", RampOf({count})}};
    const std::vector<double> y = Outputs(*this, x), scale = Ramp(count);
    for (size_t group = 0; group < 4; ++group) {
      double mean = 0, variance = 0;
      for (size_t i = 0; i < 6; ++i) mean += x[group * 6 + i] / 6;
      for (size_t i = 0; i < 6; ++i) variance += std::pow(x[group * 6 + i] - mean, 2) / 6;
      for (size_t i = 0; i < 6; ++i) {
        const size_t channel = group % 2 * 2 + i / 3, at = count == 4 ? channel : channel / 2;
        const double wanted =
            (x[group * 6 + i] - mean) / std::sqrt(variance + 0.125) * scale[at] + scale[at];
        CHECK(y[group * 6 + i] == doctest::Approx(wanted).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "PRelu has one slope, one for every channel, or those of the last axis") {
  model.inputs = {Value("x", {-1, 3, 4})};
  model.nodes = {Node("PRelu", {"x", "slope"}, "y")};
  const std::vector<double> x = Ramp(24);
  const auto check = [&](std::vector<int64_t> dims, auto index_of) {
    model.initializers["slope"] = RampOf(std::move(dims));
    const std::vector<double> y = Outputs(*this, x), slopes = Ramp(12);
    for (size_t i = 0; i < 24; ++i) CHECK(y[i] == (x[i] > 0 ? x[i] : x[i] * slopes[index_of(i)]));
  };
  check({1}, [](size_t) { return size_t{0}; });
  check({3, 1}, [](size_t i) { return i / 4 % 3; });
  check({4}, [](size_t i) { return i % 4; });
  check({3, 4}, [](size_t i) { return i % 12; });
}

TEST_CASE_FIXTURE(Fixture, "an array that the layer does not take is an error") {
  model.inputs = {Value("x", {-1, 4, 3})};
  model.initializers = {{"scale", RampOf({3})}, {"bias", RampOf({3})}};
  model.nodes = {
      Node("GroupNormalization", {"x", "scale", "bias"}, "y", {{"num_groups", int64_t{2}}})};
  CHECK(Message().starts_with("GroupNormalization 'y_node': "));
  model.nodes = {Node("InstanceNormalization", {"x", "scale", "bias"}, "y")};
  CHECK(Message().starts_with("InstanceNormalization 'y_node': "));
  model.initializers["four"] = RampOf({4});
  model.nodes = {Node("BatchNormalization", {"x", "four", "four", "four", "scale"}, "y")};
  CHECK(Message().starts_with("BatchNormalization 'y_node'"));
}

// --- numbers ---

TEST_CASE_FIXTURE(Fixture, "Clip with a least number above the largest one gives the largest") {
  const std::vector<double> x{-3, -1, 0, 0.5, 1, 2, 3, 9};
  const auto clip = [&](const std::vector<std::string>& inputs) {
    model.nodes = {Node("Clip", inputs, "y")};
    return Outputs(*this, x);
  };
  model.initializers = {{"one", Tensor::Scalar(1)}, {"two", Tensor::Scalar(2)}};
  CHECK(clip({"x", "two", "one"}) == std::vector<double>(8, 1.0));
  CHECK(clip({"x", "one", "two"}) == std::vector<double>{1, 1, 1, 1, 1, 2, 2, 2});
  CHECK(clip({"x", "", "one"}) == std::vector<double>{-3, -1, 0, 0.5, 1, 1, 1, 1});
  // Before opset 11, and of bounds that are computed.
  model.opset = 9;
  model.nodes = {Node("Clip", {"x"}, "y", {{"min", 2.0f}, {"max", 1.0f}})};
  CHECK(Outputs(*this, x) == std::vector<double>(8, 1.0));
  model.opset = 17;
  model.nodes = {Node("ReduceMin", {"x"}, "least", {{"axes", std::vector<int64_t>{1}}}),
                 Node("Clip", {"x", "least", "one"}, "y")};
  CHECK(Outputs(*this, x) == std::vector<double>{-3, -1, 0, 0.5, 1, 1, 1, 1});
}

TEST_CASE_FIXTURE(Fixture, "Gemm adds what broadcasts to its product") {
  model.inputs = {Value("x", {-1, 3})};
  model.initializers["w"] = RampOf({3, 3});
  const std::vector<double> x = Ramp(6), w = Ramp(9), c = Ramp(9);
  const auto product = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < 3; ++k) sum += x[i * 3 + k] * w[k * 3 + j];
    return sum;
  };
  const auto check = [&](std::vector<int64_t> dims, auto index_of) {
    model.initializers["c"] = RampOf(std::move(dims));
    model.nodes = {Node("Gemm", {"x", "w", "c"}, "y", {{"alpha", 2.0f}, {"beta", 4.0f}})};
    const std::vector<double> y = Outputs(*this, x);
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 3; ++j)
        CHECK(y[i * 3 + j] == 2 * product(i, j) + 4 * c[index_of(i, j)]);
    }
  };
  check({3}, [](size_t, size_t j) { return j; });
  check({1, 3}, [](size_t, size_t j) { return j; });
  check({1, 1}, [](size_t, size_t) { return size_t{0}; });
  check({}, [](size_t, size_t) { return size_t{0}; });
  // One number for every row is another one for every example.
  model.initializers["c"] = RampOf({3, 1});
  CHECK(Message().find("Gemm 'y_node'") == 0);
  model.inputs = {Value("x", {3, 3})};
  CHECK(Message().find("for a batch of 3 alone; export the model with a batch of any size") !=
        std::string::npos);
  const std::vector<double> more = Ramp(9);
  const std::vector<double> y =
      OutputsOf(*this, 3, {{"x", more}}, {.loss = false, .any_batch = false})[0];
  for (size_t i = 0; i < 9; ++i) {
    double sum = 4 * c[i / 3];
    for (size_t k = 0; k < 3; ++k) sum += 2 * more[i / 3 * 3 + k] * w[k * 3 + i % 3];
    CHECK(y[i] == sum);
  }
}

TEST_CASE_FIXTURE(Fixture, "Gemm of a computed matrix, turned and scaled") {
  model.inputs = {Value("x", {-1, 2})};
  model.initializers = {{"a", RampOf({2, 3})}, {"c", RampOf({1, 3})}};
  // x a: a product of the batch; then times itself turned.
  model.nodes = {Node("MatMul", {"x", "a"}, "h"), Node("Gemm", {"x", "b", "c"}, "y"),
                 Node("Transpose", {"h"}, "t"), Node("Gemm", {"t", "h"}, "b0", {{"alpha", 0.5f}}),
                 Node("Slice", {"b0", "zero", "two"}, "b")};
  model.initializers["zero"] = Tensor::Ints({1}, {0});
  model.initializers["two"] = Tensor::Ints({1}, {2});
  const std::vector<double> x = Ramp(4), a = Ramp(6);
  double h[2][3] = {};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) h[i][j] = x[i * 2] * a[j] + x[i * 2 + 1] * a[3 + j];
  }
  const std::vector<double> y = Outputs(*this, x);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double sum = Ramp(3)[j];
      for (size_t k = 0; k < 2; ++k)
        sum += x[i * 2 + k] * 0.5 * (h[0][k] * h[0][j] + h[1][k] * h[1][j]);
      CHECK(y[i * 3 + j] == doctest::Approx(sum).epsilon(1e-6));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "Sum broadcasts") {
  model.initializers = {{"b", RampOf({4})}, {"s", Tensor::Scalar(2)}};
  model.nodes = {Node("Sum", {"b", "x", "s"}, "y")};
  const std::vector<double> x = Ramp(8), y = Outputs(*this, x);
  for (size_t i = 0; i < 8; ++i) CHECK(y[i] == x[i] + Ramp(4)[i % 4] + 2);
  model.nodes = {Node("Sum", {"x", "x", "x"}, "y")};
  CHECK(Operators() == Ops{"ElementWiseSum"});
}

TEST_CASE_FIXTURE(Fixture, "Dropout in training mode is refused") {
  const Tensor yes{ElementType::kBool, {}, "\1"}, no{ElementType::kBool, {}, std::string(1, '\0')};
  model.initializers = {{"ratio", Tensor::Scalar(0.5f)}, {"mode", yes}};
  model.nodes = {Node("Dropout", {"x", "ratio", "mode"}, "y")};
  CHECK(Message() ==
        "Dropout 'y_node' cannot be imported: it is in training mode; export the model in "
        "evaluation mode");
  model.initializers["mode"] = no;
  CHECK(Operators() == Ops{"Dropout"});
  model.initializers["mode"] = yes;
  model.initializers["ratio"] = Tensor::Scalar(0);
  CHECK(Operators() == Ops{"Dropout"});
}

TEST_CASE_FIXTURE(Fixture, "integers that float32 does not hold are refused or said") {
  model.inputs = {{"x", ElementType::kInt64, true, {-1, 4}, {}}};
  model.initializers["odd"] = Tensor::Ints({4}, {1, 2, 3, (1 << 24) + 1});
  model.nodes = {Node("Equal", {"x", "odd"}, "y")};
  CHECK(Message() ==
        "Equal 'y_node' cannot be imported: its input 'odd' has the integer 16777217, which "
        "float32 does not hold");
  model.initializers["odd"] = Tensor::Ints({4}, {1, 2, 3, int64_t{1} << 40});
  const std::vector<std::string> notes = Import().notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "Equal 'y_node' computes with integers of the data, which are float32 here: exact up to "
        "16777216, and larger ones are rounded");
  model.nodes = {Node("CumSum", {"x", "axis"}, "y")};
  model.initializers["axis"] = Tensor::Ints({}, {1});
  CHECK(Import().notes.size() == 1);
  model.inputs = {Value("x", {-1, 4})};
  CHECK(Import().notes.empty());
}

TEST_CASE_FIXTURE(Fixture, "one integer that float32 does not hold is none in a layer either") {
  model.inputs = {{"x", ElementType::kInt64, true, {-1, 4}, {}}};
  const std::string reason = " has the integer 16777217, which float32 does not hold";
  const auto is_refused = [&] { return Message().find(reason) != std::string::npos; };
  model.initializers = {{"one", Tensor::Ints({}, {(1 << 24) + 1})},
                        {"least", Tensor::Ints({}, {-(1 << 24) - 1})},
                        {"none", Tensor::Ints({}, {std::numeric_limits<int64_t>::max()})},
                        {"exact", Tensor::Ints({}, {int64_t{3} << 40})},
                        {"values", Tensor::Ints({2}, {0, (1 << 24) + 1})},
                        {"depth", Tensor::Ints({}, {3})},
                        {"pads", Tensor::Ints({4}, {0, 1, 0, 0})}};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less"}) {
    CAPTURE(op);
    model.nodes = {Node(op, {"x", "one"}, "y")};
    CHECK(is_refused());
    model.nodes = {Node(op, {"x", "exact"}, "y")};
    CHECK(Message().empty());
  }
  model.nodes = {Node("Clip", {"x", "one"}, "y")};
  CHECK(is_refused());
  // Bounds that no exact number reaches.
  model.nodes = {Node("Clip", {"x", "least", "none"}, "y")};
  CHECK(Outputs(*this, {1, -2, 3, -4, 5, -6, 7, 16777216}) ==
        std::vector<double>{1, -2, 3, -4, 5, -6, 7, 16777216});
  model.nodes = {Node("Pad", {"x", "pads", "one"}, "y")};
  CHECK(is_refused());
  model.nodes = {Node("OneHot", {"x", "depth", "values"}, "y")};
  CHECK(is_refused());
}

// --- graphs ---

TEST_CASE_FIXTURE(Fixture, "nodes may stand in any order") {
  model.nodes = {Node("Neg", {"b"}, "y"), Node("Abs", {"a"}, "b"), Node("Neg", {"x"}, "a"),
                 Node("Relu", {"y"}, "unread")};
  CHECK(Outputs(*this, {1, -2, 3, 4, -5, 6, 7, 8}) ==
        std::vector<double>{-1, -2, -3, -4, -5, -6, -7, -8});
  // A long chain from its end.
  model.nodes.clear();
  for (int i = 20000; i > 0; --i)
    model.nodes.push_back(Node("Identity", {format("h{}", i - 1)}, format("h{}", i)));
  model.nodes.push_back(Node("Neg", {"x"}, "h0"));
  model.nodes.push_back(Node("Abs", {"h20000"}, "y"));
  CHECK(Operators() == Ops{"negative", "abs"});
}

TEST_CASE_FIXTURE(Fixture, "an input or a part of one may be an output") {
  model.nodes = {Node("Identity", {"x"}, "y"), Node("Relu", {"x"}, "z")};
  model.outputs.push_back(Value("z", {-1, 4}));
  const std::vector<double> x{1, -2, 3, 4, -5, 6, 7, 8};
  const auto outputs = OutputsOf(*this, 2, {{"x", x}});
  CHECK(outputs[0] == x);
  CHECK(outputs[1] == std::vector<double>{1, 0, 3, 4, 0, 6, 7, 8});
  CHECK(Operators() == Ops{"Activation", "identity"});
}

TEST_CASE_FIXTURE(Fixture, "inputs of any type that nothing reads are omitted") {
  model.nodes = {Node("Relu", {"x"}, "y"), Node("Identity", {"other"}, "unread")};
  model.inputs.push_back({"other", ElementType::kString, true, {-1, 4}, {}});
  model.inputs.push_back({"open", ElementType::kFloat, false, {}, {}});
  model.inputs.push_back({"batch", ElementType::kFloat, true, {7, 2}, {}});
  CHECK(Import().inputs.size() == 1);
  CHECK(Operators() == Ops{"Activation"});
  model.nodes = {Node("Relu", {"other"}, "y")};
  CHECK(Message() == "the input 'other' is of type string; expected numbers or truth values");
}

TEST_CASE_FIXTURE(Fixture, "truth values and integers of any width are inputs") {
  model.inputs.push_back({"mask", ElementType::kBool, true, {-1, 4}, {}});
  model.initializers["zero"] = Tensor::Scalar(0);
  model.nodes = {Node("Where", {"mask", "x", "zero"}, "y")};
  const std::vector<double> x = Ramp(8), mask{1, 0, 0, 1, 1, 1, 0, 1};
  const std::vector<double> y = OutputsOf(*this, 2, {{"x", x}, {"mask", mask}})[0];
  for (size_t i = 0; i < 8; ++i) CHECK(y[i] == x[i] * mask[i]);
  model.inputs = {{"x", ElementType::kUint8, true, {-1, 4}, {}}};
  model.nodes = {Node("Cast", {"x"}, "y", CastTo(ElementType::kFloat))};
  CHECK(Import().inputs.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "images with the channels at the end come in with the channels first") {
  model.inputs = {Value("x", {-1, 2, 3, 4})};
  model.initializers["w"] = RampOf({4});
  model.nodes = {Node("Mul", {"x", "w"}, "y")};
  const std::vector<double> first = Ramp(24);  // [4, 2, 3]
  std::vector<double> wanted(24);
  for (size_t c = 0; c < 4; ++c) {
    for (size_t at = 0; at < 6; ++at) wanted[at * 4 + c] = first[c * 6 + at] * Ramp(4)[c];
  }
  const onnx::ImportOptions options{.shapes = {{"x", TShape{4, 2, 3}}}};
  CHECK(OutputsOf(*this, 1, {{"x", first}}, options)[0] == wanted);
  // What the file does with them first is undone.
  model.nodes = {Node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{0, 3, 1, 2}}}),
                 Node("Relu", {"t"}, "y")};
  const onnx::ImportedNet net = onnx::ImportModel(model, operators, options);
  REQUIRE(net.layers.size() == 1);
  CHECK(net.layers[0].inputs == std::vector<std::string>{"x"});
  CHECK(Import().layers.size() == 2);  // in the order of the file
}

// --- batches of fixed size ---

// What a model for a batch of one gives for two examples is what it gives for each.
void CheckFixedBatch(Fixture& fixture, std::vector<int64_t> example) {
  int64_t size = 1;
  for (const int64_t dim : example) size *= dim;
  example.insert(example.begin(), 1);
  fixture.model.inputs = {Value("x", example)};
  CHECK(fixture.Message().empty());
  const std::vector<double> x = Ramp(2 * size);
  const std::vector<double> both = Outputs(fixture, x);
  std::vector<double> wanted;
  for (int64_t i = 0; i < 2; ++i) {
    const std::vector<double> one(x.begin() + i * size, x.begin() + (i + 1) * size);
    const auto y = OutputsOf(fixture, 1, {{"x", one}}, {.loss = false, .any_batch = false})[0];
    wanted.insert(wanted.end(), y.begin(), y.end());
  }
  REQUIRE(both.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    CHECK(both[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

TEST_CASE_FIXTURE(Fixture, "a class token joins every example of a batch of fixed size") {
  model.initializers["token"] = RampOf({1, 1, 4});
  model.nodes = {Node("Concat", {"token", "x"}, "y", {{"axis", int64_t{1}}})};
  CheckFixedBatch(*this, {3, 4});
  CHECK(Import().arrays.contains("token"));
  // Of two examples that have different ones, no batch of any size is made.
  model.inputs = {Value("x", {2, 3, 4})};
  model.initializers["token"] = RampOf({2, 1, 4});
  CHECK(Message() ==
        "Concat 'y_node' cannot be imported: its input 'token' holds for a batch of 2 alone; "
        "export the model with a batch of any size");
}

TEST_CASE_FIXTURE(Fixture, "indices for each example of a batch of fixed size") {
  // Into columns of four, of which the first three are read.
  model.initializers["i"] = Tensor::Ints({1, 2, 3}, {3, 0, 1, 2, -1, 0});
  model.nodes = {Node("GatherElements", {"x", "i"}, "y", {{"axis", int64_t{1}}})};
  CheckFixedBatch(*this, {4, 5});
  // Others for the second example.
  model.inputs = {Value("x", {2, 4})};
  model.initializers["i"] = Tensor::Ints({2, 2}, {0, 1, 3, 2});
  CHECK(Message() ==
        "GatherElements 'y_node' cannot be imported: its input 'i' holds for a batch of 2 alone; "
        "export the model with a batch of any size");
  CHECK(OutputsOf(*this, 2, {{"x", {1, 2, 3, 4, 5, 6, 7, 8}}}, {.any_batch = false})[0] ==
        std::vector<double>{1, 2, 8, 7});
}

TEST_CASE_FIXTURE(Fixture, "an output that stays as it is for every batch is refused") {
  // Two rows of a batch of two, and of one of four.
  model.inputs = {Value("x", {2, 3}), Value("unread", {2, 1})};
  model.initializers["points"] = Tensor::Ints({2, 2}, {0, 2, 1, 0});
  model.nodes = {Node("GatherND", {"x", "points"}, "y")};
  CHECK(Message() ==
        "the output 'y' is [2] for a batch of 2 alone; export the model with a batch of any size");
}

TEST_CASE_FIXTURE(Fixture, "training leaves a mask of infinities alone") {
  const float infinity = std::numeric_limits<float>::infinity();
  model.initializers = {{"mask", Tensor::Floats({4}, {0, -infinity, 0, -infinity})},
                        {"w", RampOf({4})}};
  model.nodes = {Node("Add", {"x", "mask"}, "a"), Node("Softmax", {"a"}, "s"),
                 Node("Mul", {"s", "w"}, "y")};
  for (const auto& variable : Import().variables) {
    CAPTURE(variable.name);
    CHECK(variable.fixed == (variable.name == "mask"));
  }
  CHECK(Import().variables.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "attention of several heads with the shapes of one example") {
  // Sequences of 3 with 8 numbers, two heads: as matrices of [batch and heads, 3, 4].
  const auto sizes = [](std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return Tensor::Ints({count}, values);
  };
  const auto turn = [](const char* from, const char* to, std::vector<int64_t> order) {
    return Node("Transpose", {from}, to, {{"perm", std::move(order)}});
  };
  model.initializers = {{"w", RampOf({8, 8})}};
  for (const bool batch_first : {true, false}) {
    CAPTURE(batch_first);
    if (batch_first) {
      model.initializers["heads"] = sizes({1, 3, 2, 4});
      model.initializers["matrices"] = sizes({2, 3, 4});
      model.initializers["apart"] = sizes({1, 2, 3, 4});
      model.initializers["joined"] = sizes({1, 3, 8});
      model.nodes = {Node("MatMul", {"x", "w"}, "q"),
                     Node("Reshape", {"q", "heads"}, "h"),
                     turn("h", "t", {0, 2, 1, 3}),
                     Node("Reshape", {"t", "matrices"}, "m"),
                     turn("m", "k", {0, 2, 1}),
                     Node("MatMul", {"m", "k"}, "s"),
                     Node("Softmax", {"s"}, "p"),
                     Node("MatMul", {"p", "m"}, "o"),
                     Node("Reshape", {"o", "apart"}, "a"),
                     turn("a", "b", {0, 2, 1, 3}),
                     Node("Reshape", {"b", "joined"}, "y")};
    } else {
      // The sequence before the batch, which torch.nn.MultiheadAttention makes of it; then all
      // rows as one matrix.
      model.initializers["matrices"] = sizes({3, 2, 4});
      model.initializers["rows"] = sizes({3, 8});
      model.initializers["joined"] = sizes({3, 1, 8});
      model.nodes = {turn("x", "first", {1, 0, 2}),
                     Node("Reshape", {"first", "matrices"}, "h"),
                     turn("h", "m", {1, 0, 2}),
                     turn("m", "k", {0, 2, 1}),
                     Node("MatMul", {"m", "k"}, "s"),
                     Node("Softmax", {"s"}, "p"),
                     Node("MatMul", {"p", "m"}, "o"),
                     turn("o", "b", {1, 0, 2}),
                     Node("Reshape", {"b", "rows"}, "r"),
                     Node("MatMul", {"r", "w"}, "z"),
                     Node("Reshape", {"z", "joined"}, "j"),
                     turn("j", "y", {1, 0, 2})};
    }
    CheckFixedBatch(*this, {3, 8});
  }
}

TEST_CASE_FIXTURE(Fixture, "windows of images with the shapes of one example") {
  // 4 x 6 images of 2 channels in windows of 2 x 3 and back.
  model.initializers = {{"windows", Tensor::Ints({6}, {1, 2, 2, 2, 3, 2})},
                        {"rows", Tensor::Ints({3}, {4, 6, 2})},
                        {"again", Tensor::Ints({6}, {1, 2, 2, 2, 3, 2})},
                        {"image", Tensor::Ints({4}, {1, 4, 6, 2})}};
  const onnx::Attributes swapped{{"perm", std::vector<int64_t>{0, 1, 3, 2, 4, 5}}};
  model.nodes = {
      Node("Reshape", {"x", "windows"}, "a"), Node("Transpose", {"a"}, "b", swapped),
      Node("Reshape", {"b", "rows"}, "c"),    Node("Softmax", {"c"}, "d", {{"axis", int64_t{1}}}),
      Node("Reshape", {"d", "again"}, "e"),   Node("Transpose", {"e"}, "f", swapped),
      Node("Reshape", {"f", "image"}, "y")};
  CheckFixedBatch(*this, {4, 6, 2});
}

TEST_CASE_FIXTURE(Fixture, "a column is repeated in every window of every example") {
  model.initializers = {{"windows", Tensor::Ints({3}, {4, 6, 1})},
                        {"wide", Tensor::Ints({3}, {4, 6, 3})},
                        {"image", Tensor::Ints({3}, {1, 24, 3})}};
  model.nodes = {Node("Reshape", {"x", "windows"}, "a"), Node("Expand", {"a", "wide"}, "b"),
                 Node("Reshape", {"b", "image"}, "y")};
  CheckFixedBatch(*this, {4, 6});
}

TEST_CASE_FIXTURE(Fixture, "sums over and parts of a batch of fixed size are refused") {
  model.initializers = {{"zero", Tensor::Ints({1}, {0})},
                        {"one", Tensor::Ints({1}, {1})},
                        {"axis", Tensor::Ints({}, {0})}};
  // All of the one example, as exporters write it, is all of every one.
  model.nodes = {Node("Slice", {"x", "zero", "one", "zero"}, "s"), Node("Add", {"x", "s"}, "y")};
  CheckFixedBatch(*this, {4});
  model.nodes[0] = Node("CumSum", {"x", "axis"}, "s");
  const std::string end = " for a batch of 1 alone; export the model with a batch of any size";
  CHECK(Message() == "CumSum 's_node' cannot be imported: it runs over axis 0, which holds" + end);
  model.inputs = {Value("x", {2, 4})};
  model.nodes[0] = Node("Slice", {"x", "zero", "one", "zero"}, "s");
  CHECK(Message().find("it takes a part of axis 0, which holds for a batch of 2 alone") !=
        std::string::npos);
  CHECK(OutputsOf(*this, 2, {{"x", {1, 2, 3, 4, 5, 6, 7, 8}}}, {.any_batch = false})[0] ==
        std::vector<double>{2, 4, 6, 8, 6, 8, 10, 12});
}

TEST_CASE_FIXTURE(Fixture, "a softmax over a batch of fixed size is refused") {
  model.inputs = {Value("x", {1, 4})};
  model.nodes = {Node("Softmax", {"x"}, "y", {{"axis", int64_t{0}}})};
  CHECK(Message() ==
        "Softmax 'y_node' cannot be imported: it runs over axis 0, which holds for a batch of 1 "
        "alone; export the model with a batch of any size");
}

}  // namespace
}  // namespace mxtrain::test
