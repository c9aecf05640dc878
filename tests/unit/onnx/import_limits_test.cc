// SPDX-License-Identifier: Apache-2.0
// What an ONNX model may ask for and not get: every refusal says why, and nothing is computed
// wrongly instead. What follows from numbers of the file alone is computed as integers.
#include <doctest/doctest.h>

#include <limits>

#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(),
                  kLeast = std::numeric_limits<int64_t>::min();

ModelNode NodeOf(const std::string& op, std::vector<std::string> inputs,
                 std::vector<std::string> outputs, onnx::Attributes attributes = {}) {
  return {op, "n", "", std::move(inputs), std::move(outputs), std::move(attributes)};
}

TEST_CASE_FIXTURE(Fixture, "an axis without elements is refused") {
  model.inputs = {Value("x", {1, 3, 0, 4})};
  model.initializers["sizes"] = Tensor::Ints({4}, {1, 3, 2, 4});
  model.nodes = {Node("Resize", {"x", "", "", "sizes"}, "y", {{"mode", std::string("nearest")}})};
  CHECK(Message() == "the input 'x' has no elements: one example is [3, 0, 4]");
  model.inputs = {Value("x", {-1, 4})};
  model.initializers["empty"] = Tensor::Floats({1, 3, 0, 4}, {});
  model.nodes = {Node("Resize", {"empty", "", "", "sizes"}, "y")};
  CHECK(Message() == "Resize 'y_node' cannot be imported: its data [1, 3, 0, 4] are empty");
  model.nodes = {Node("Concat", {"x", "empty"}, "y", {{"axis", int64_t{1}}})};
  CHECK(Message() == "Concat 'y_node' cannot be imported: its input 'empty' has no elements");
}

TEST_CASE_FIXTURE(Fixture, "a length of 0 does not excuse the others") {
  const int64_t huge = int64_t{1} << 43;
  model.initializers["a"] = model.initializers["b"] = Tensor::Floats({huge, 0}, {});
  model.nodes = {Node("Concat", {"a", "b"}, "c", {{"axis", int64_t{1}}}),
                 Node("Add", {"x", "c"}, "y")};
  CHECK(Message() == "Add 'y_node' cannot be imported: its input 'c' has no elements");
  for (const int64_t transposed : {0, 1}) {
    model.nodes = {Node("Gemm", {"x", "a"}, "y", {{"transB", transposed}})};
    CHECK(Message() ==
          "Gemm 'y_node' cannot be imported: its weight [8796093022208, 0] has no elements");
  }
  model.nodes = {Node("MatMul", {"x", "a"}, "y")};
  CHECK(Message() ==
        "MatMul 'y_node' cannot be imported: its weight [8796093022208, 0] has no elements");
  model.initializers["d"] = Tensor::Floats({0, huge, huge}, {});
  model.nodes = {Node("Transpose", {"d"}, "t"), Node("Add", {"x", "t"}, "y")};
  CHECK(Message() ==
        format("Transpose 't_node': an array of {} elements along an axis is too large or negative",
               huge));
}

TEST_CASE_FIXTURE(Fixture, "an output that has no equivalent is refused where something reads it") {
  model.inputs = {Value("x", {-1, 2, 4, 4})};
  const onnx::Attributes window = {{"kernel_shape", std::vector<int64_t>{2, 2}}};
  const std::string refused = "MaxPool 'n' cannot be imported: its output 'i' has no equivalent";
  model.nodes = {NodeOf("MaxPool", {"x"}, {"p", "i"}, window),
                 Node("Cast", {"i"}, "y", CastTo(ElementType::kFloat))};
  CHECK(Message() == refused);
  model.nodes[1] = Node("Shape", {"i"}, "y");
  CHECK(Message() == refused);
  model.nodes = {NodeOf("MaxPool", {"x"}, {"y", "i"}, window)};
  CHECK(Message().empty());
  model.outputs.push_back(Value("i", {-1, 2, 3, 3}));
  CHECK(Message() == refused);
  model.outputs = {Value("y", {})};
  model.nodes = {NodeOf("Dropout", {"x"}, {"d", "mask"}), Node("Where", {"mask", "x", "d"}, "y")};
  CHECK(Message() == "Dropout 'n' cannot be imported: its output 'mask' has no equivalent");
  model.nodes = {NodeOf("Shape", {"x"}, {"", "s"}), Node("Reshape", {"x", "s"}, "y")};
  CHECK(Message() == "Shape 'n' cannot be imported: its output 's' has no equivalent");
}

TEST_CASE_FIXTURE(Fixture, "all inputs have one batch") {
  model.nodes = {Node("Add", {"x", "z"}, "y")};
  const auto message = [this](std::vector<int64_t> x, std::vector<int64_t> z) {
    model.inputs = {Value("x", std::move(x)), Value("z", std::move(z))};
    return Message();
  };
  for (const int64_t batch : {int64_t{1}, int64_t{3}, ModelValue::kDynamic})
    CHECK(message({batch, 4}, {batch, 4}).empty());
  CHECK(message({1, 4}, {ModelValue::kDynamic, 4}).empty());
  const std::string rest =
      "; expected one batch for all: export the model with a batch of any size";
  CHECK(message({1, 4}, {3, 4}) == "the inputs 'x' and 'z' have batches of 1 and of 3" + rest);
  CHECK(message({2, 4}, {ModelValue::kDynamic, 4}) ==
        "the inputs 'x' and 'z' have batches of 2 and of any size" + rest);
  CHECK(message({ModelValue::kDynamic, 4}, {2, 4}) ==
        "the inputs 'x' and 'z' have batches of any size and of 2" + rest);
}

TEST_CASE_FIXTURE(Fixture, "a shape that holds for the batch of the file alone is refused") {
  const auto message = [this](std::vector<int64_t> example, std::vector<int64_t> sizes) {
    model.inputs = {Value("x", std::move(example))};
    model.initializers["sizes"] = Tensor::Ints({static_cast<int64_t>(sizes.size())}, sizes);
    model.nodes = {Node("Reshape", {"x", "sizes"}, "y")};
    return Message();
  };
  const std::string refused = "Reshape 'y_node' cannot be imported: its shape ",
                    rest =
                        " holds for a batch of 2 alone; export the model with a batch of any size";
  CHECK(message({2, 6}, {3, 4}) == refused + "(3, 4)" + rest);
  CHECK(message({2, 6}, {3, -1}) == refused + "(3, -1)" + rest);
  CHECK(message({2, 3, 4}, {4, 3, 2}).empty());  // 2 of the 4 are one example
  // 12 heads of one example are 12 of each.
  CHECK(message({1, 12, 4, 2}, {12, 4, 2}).empty());
  CHECK(Import().layers[0].params == Kwargs{{"shape", "(-1, 4, 2)"}});
  CHECK(message({1, 12, 4, 2}, {12, -1, 2}).empty());
  CHECK(Import().layers[0].params == Kwargs{{"shape", "(-1, 4, 2)"}});
  CHECK(message({1, 12, 4, 2}, {-1, 4, 2}).empty());
  CHECK(message({1, 12, 4, 2}, {1, -1}).empty());
  CHECK(message({1, 12, 4, 2}, {0, 12, -1}).empty());
  CHECK(message({1, 12, 4, 2}, {7, 4, 2}) ==
        "Reshape 'y_node': [1, 12, 4, 2] cannot become (7, 4, 2)");
  CHECK(message({ModelValue::kDynamic, 12, 4, 2}, {12, -1, 2}).empty());  // as the file says
  // Sequences before the batch.
  model.inputs = {Value("x", {1, 12, 4})};
  model.initializers["sizes"] = Tensor::Ints({3}, {12, -1, 2});
  model.nodes = {Node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{1, 0, 2}}}),
                 Node("Reshape", {"t", "sizes"}, "y")};
  CHECK(Message().empty());
}

TEST_CASE_FIXTURE(Fixture, "unknown operators that no output depends on are omitted") {
  model.nodes = {Node("NonMaxSuppression", {"x"}, "a"), Node("Relu", {"x"}, "y")};
  CHECK(Operators() == Ops{"Activation"});
}

TEST_CASE_FIXTURE(Fixture, "the largest element along the batch is not searched for") {
  for (const std::string op : {"ArgMax", "ArgMin"}) {
    model.nodes = {Node(op, {"x"}, "y")};  // the axis is 0 unless it is told
    CHECK(Message() == op + " 'y_node' cannot be imported: it reduces the batch axis");
    model.nodes[0].attributes["axis"] = int64_t{1};
    CHECK(Message().empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "strides beyond all images are refused") {
  model.inputs = {Value("x", {-1, 2, 4, 4})};
  model.initializers["w"] = Zeros({2, 1, 4, 4});
  for (const int64_t stride : {int64_t{1} << 62, kMost, kLeast}) {
    model.nodes = {Node("ConvTranspose", {"x", "w"}, "y",
                        {{"strides", std::vector<int64_t>{stride, stride}},
                         {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                         {"group", int64_t{2}}})};
    CHECK(Message().starts_with("ConvTranspose 'y_node'"));
  }
}

// What numbers of a file become, seen as the end of a slice.
struct FoldFixture : Fixture {
  FoldFixture() {
    model.initializers = {{"zero", Tensor::Ints({1}, {0})},
                          {"one", Tensor::Ints({1}, {1})},
                          {"most", Tensor::Ints({1}, {kMost})},
                          {"least", Tensor::Ints({1}, {kLeast})},
                          {"odd", Tensor::Ints({1}, {(1 << 24) + 1})},
                          {"even", Tensor::Ints({1}, {1 << 24})}};
  }
  int64_t LengthOf(std::vector<ModelNode> nodes) {
    model.nodes = std::move(nodes);
    model.nodes.push_back(Node("Slice", {"x", "zero", "end", "one"}, "y"));
    const Symbol symbol = onnx::ToSymbol(Import(), operators);
    return symbol.InferShape({{"x", TShape{2, 4}}}).outputs[0][1];
  }
};

TEST_CASE_FIXTURE(FoldFixture, "a number as a truth value is 0 or 1") {
  model.initializers["three"] = Tensor::Ints({1}, {3});
  for (const auto& [name, length] : {std::pair("three", 1), std::pair("least", 1)}) {
    CHECK(LengthOf({Node("Cast", {name}, "truth", CastTo(ElementType::kBool)),
                    Node("Cast", {"truth"}, "end", CastTo(ElementType::kInt64))}) == length);
  }
  CHECK(LengthOf({Node("Cast", {"three"}, "same", CastTo(ElementType::kInt32)),
                  Node("Cast", {"same"}, "end", CastTo(ElementType::kInt64))}) == 3);
}

TEST_CASE_FIXTURE(FoldFixture, "integers are not rounded to float32") {
  CHECK(LengthOf({Node("Neg", {"most"}, "a"), Node("Neg", {"a"}, "end")}) == 4);
  CHECK(LengthOf({Node("Neg", {"odd"}, "a"), Node("Abs", {"a"}, "b"),
                  Node("Sub", {"b", "even"}, "end")}) == 1);
  CHECK(LengthOf({Node("Not", {"zero"}, "end")}) == 1);
  for (const char* op : {"Neg", "Abs"}) {
    model.nodes = {Node(op, {"least"}, "end"), Node("Slice", {"x", "zero", "end", "one"}, "y")};
    CHECK(Message() == format("{} 'end_node': a number is too large", op));
  }
}

TEST_CASE_FIXTURE(FoldFixture, "the remainder of integers has the sign of the dividend with fmod") {
  model.initializers["a"] = Tensor::Ints({1}, {-7});
  model.initializers["b"] = Tensor::Ints({1}, {3});
  // An end of -1 is before the last of 4.
  CHECK(LengthOf({Node("Mod", {"a", "b"}, "end", {{"fmod", int64_t{1}}})}) == 3);
  CHECK(LengthOf({Node("Mod", {"a", "b"}, "end")}) == 2);
}

TEST_CASE_FIXTURE(FoldFixture, "powers of integers are integers") {
  model.initializers["seven"] = Tensor::Ints({1}, {7});
  model.initializers["two"] = Tensor::Ints({1}, {2});
  CHECK(LengthOf({Node("Pow", {"seven", "one"}, "power"), Node("Div", {"power", "two"}, "end")}) ==
        3);
  CHECK(LengthOf({Node("Pow", {"two", "one"}, "end")}) == 2);
  model.nodes = {Node("Pow", {"seven", "most"}, "end"),
                 Node("Slice", {"x", "zero", "end", "one"}, "y")};
  CHECK(Message() == "Pow 'end_node': a number is too large");
}

TEST_CASE_FIXTURE(FoldFixture, "a range of integers is not rounded to float32") {
  model.initializers["limit"] = Tensor::Ints({1}, {(1 << 24) + 4});
  model.initializers["minus"] = Tensor::Ints({1}, {-2});
  const auto at_one = [](const char* start, const char* limit, const char* delta) {
    return std::vector<ModelNode>{Node("Range", {start, limit, delta}, "range"),
                                  Node("Gather", {"range", "one"}, "second"),
                                  Node("Sub", {"second", "even"}, "end")};
  };
  CHECK(LengthOf(at_one("even", "limit", "one")) == 1);    // 2^24 + 1
  CHECK(LengthOf(at_one("limit", "even", "minus")) == 2);  // 2^24 + 2
  const auto count = [](const char* start, const char* limit, const char* delta) {
    return std::vector<ModelNode>{Node("Range", {start, limit, delta}, "range"),
                                  Node("Shape", {"range"}, "end")};
  };
  CHECK(LengthOf(count("zero", "one", "most")) == 1);
  CHECK(LengthOf(count("even", "limit", "one")) == 4);
  CHECK(LengthOf(count("limit", "odd", "minus")) == 2);
  for (const char* start : {"zero", "least"}) {
    model.nodes = count(start, "most", "one");
    model.nodes.push_back(Node("Slice", {"x", "zero", "end", "one"}, "y"));
    CHECK(Message() == "Range 'range_node': a range is too long");
  }
  model.nodes = count("most", "least", "minus");
  model.nodes.push_back(Node("Slice", {"x", "zero", "end", "one"}, "y"));
  CHECK(Message() == "Range 'range_node': a range is too long");
}

}  // namespace
}  // namespace mxtrain::test
