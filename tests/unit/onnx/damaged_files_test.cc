// SPDX-License-Identifier: Apache-2.0
// Graphs that are refused, and files that are damaged or hostile.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/internal/wire_scan.h"
#include "mxtrain/onnx/model_file.h"
#include "tests/support/allocation_count.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

TEST_CASE_FIXTURE(Fixture, "unknown operators are named, all at once, with their nodes") {
  model.nodes = {Node("NonMaxSuppression", {"x"}, "a"), Node("Relu", {"x"}, "y")};
  model.nodes.push_back(Node("QLinear", {"x"}, "b"));
  model.nodes.back().domain = "com.example";
  model.outputs.insert(model.outputs.end(), {Value("a", {-1, 4}), Value("b", {-1, 4})});
  CHECK(Message() ==
        "the model uses operators that have no equivalent here: NonMaxSuppression (a_node), "
        "com.example.QLinear (b_node)");
}

TEST_CASE_FIXTURE(Fixture, "opsets outside the supported ones are refused") {
  model.nodes = {Node("Relu", {"x"}, "y")};
  for (const int64_t opset : {6, 7, 8, 9, 13, 20, 23, 28}) {
    model.opset = opset;
    CHECK(Message().empty());
  }
  for (const int64_t opset : {5, 29}) {
    model.opset = opset;
    CHECK(Message() == format("the model uses opset {} of ONNX; 6 to 28 are supported: export it "
                              "with one of these",
                              opset));
  }
}

TEST_CASE_FIXTURE(Fixture, "graphs that contradict themselves are refused") {
  model.nodes = {Node("Relu", {"b"}, "a"), Node("Relu", {"a"}, "b"), Node("Relu", {"b"}, "y")};
  CHECK(
      Message() ==
      "Relu 'a_node' reads 'b', which no node before it computes: the file lacks it, or its nodes "
      "form a cycle");
  model.nodes = {Node("Relu", {"x"}, "x")};
  CHECK(Message() == "Relu 'x_node' computes 'x', which exists already");
  model.nodes = {Node("Relu", {"x"}, "a")};
  CHECK(Message() == "the output 'y' is computed by no node");
  model.nodes = {Node("Relu", {}, "y")};
  CHECK(Message() == "Relu 'y_node' lacks its input 0");
  model.nodes = {Node("Softmax", {"x"}, "y", {{"axis", int64_t{7}}})};
  CHECK(Message() == "Softmax 'y_node': axis 7 is out of range for 2 axes");
  model.nodes = {Node("Softmax", {"x"}, "y", {{"axis", std::string("1")}})};
  CHECK(Message() == "Softmax 'y_node': its attribute 'axis' is not an integer");
}

TEST_CASE_FIXTURE(Fixture, "small graphs that ask for huge arrays are refused") {
  const int64_t huge = int64_t{1} << 40;
  model.initializers["sizes"] = Tensor::Ints({2}, {huge, huge});
  model.initializers["one"] = Tensor::Scalar(1);
  for (const char* op : {"ConstantOfShape", "Expand"}) {
    CAPTURE(op);
    const bool expand = std::string(op) == "Expand";
    model.nodes = {
        Node(op,
             expand ? std::vector<std::string>{"one", "sizes"} : std::vector<std::string>{"sizes"},
             "big"),
        Node("Add", {"x", "big"}, "y")};
    CHECK(Message() ==
          format("{} 'big_node': an array of {} elements along an axis is too large or negative",
                 op, huge));
  }
  model.initializers["pads"] = Tensor::Ints({4}, {huge, huge, huge, huge});
  model.nodes = {Node("Pad", {"x", "pads"}, "y")};
  CHECK(Message() ==
        "Pad 'y_node': shape [2199023255556, 2199023255556] has too many elements: an array holds "
        "at most 2^44");
  model.initializers["reps"] = Tensor::Ints({2}, {huge, huge});
  model.nodes = {Node("Tile", {"x", "reps"}, "y")};
  CHECK(Message() ==
        "Tile 'y_node': shape [4398046511104, 4398046511104] has too many elements: an array holds "
        "at most 2^44");
}

// --- files ---

// Protobuf's wire format, written by hand: what a library would not write.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Number(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}
std::string Bytes(int field, const std::string& value) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(value.size()) + value;
}
std::string ModelOf(const std::string& graph) {
  return Number(1, 8) + Bytes(7, graph) + Bytes(8, Number(2, 17));
}
// TensorProto: dims 1, data_type 2, name 8, raw_data 9, external_data 13, data_location 14.
std::string External(const std::string& location, const std::string& offset = "0",
                     const std::string& name = "w") {
  const auto entry = [](const std::string& key, const std::string& value) {
    return Bytes(13, Bytes(1, key) + Bytes(2, value));
  };
  return Bytes(5, Number(1, 2) + Number(2, 1) + Bytes(8, name) + entry("location", location) +
                      entry("offset", offset) + entry("length", "8") + Number(14, 1));
}

TEST_CASE("a truncated or changed file is an error, whatever is missing") {
  if (!onnx::HasOnnxFiles()) return;
  Fixture fixture;
  fixture.model.initializers["fc.weight"] = Zeros({4, 3});
  fixture.model.nodes = {
      Node("MatMul", {"x", "fc.weight"}, "y", {{"a", std::vector<int64_t>{1, 2}}})};
  const std::string bytes = onnx::WriteModel(fixture.model);
  CHECK(onnx::ParseModel(bytes, "model").nodes.size() == 1);
  const auto try_import = [&](const std::string& changed) {
    return MessageOf(
        [&] { onnx::ImportModel(onnx::ParseModel(changed, "model"), fixture.operators); });
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    try_import(bytes.substr(0, length));  // an Error or nothing
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      try_import(changed);
    }
  }
  CHECK(MessageOf([] { onnx::ParseModel("", "model"); }) ==
        "model is not an ONNX model, or is truncated");
  CHECK(MessageOf([] { onnx::ParseModel("not a model", "model"); }) ==
        "model is not an ONNX model, or is truncated");
}

TEST_CASE("an open length may be written as -1, and other negative ones are refused") {
  if (!onnx::HasOnnxFiles()) return;
  // ValueInfoProto: name 1, type 2; within it tensor_type 1, elem_type 1, shape 2, dim 1,
  // dim_value 1.
  const auto value = [](const std::string& name, int64_t length) {
    const std::string dims =
        Bytes(1, Number(1, static_cast<uint64_t>(length))) + Bytes(1, Number(1, 4));
    return Bytes(1, name) + Bytes(2, Bytes(1, Number(1, 1) + Bytes(2, dims)));
  };
  const auto dims = [&](int64_t length) {
    const std::string node = Bytes(1, Bytes(1, "x") + Bytes(2, "y") + Bytes(4, "Relu"));
    const std::string graph = node + Bytes(11, value("x", length)) + Bytes(12, value("y", length));
    return onnx::ParseModel(ModelOf(graph), "model").inputs.at(0).dims;
  };
  CHECK(dims(7) == std::vector<int64_t>{7, 4});
  CHECK(dims(-1) == std::vector<int64_t>{ModelValue::kDynamic, 4});
  CHECK(MessageOf([&] { dims(-2); }) ==
        "model is not a model that can be read: 'x' has -2 elements along an axis");
}

TEST_CASE("arrays must have the bytes that their shape needs") {
  if (!onnx::HasOnnxFiles()) return;
  const auto message = [](const std::string& tensor) {
    return MessageOf([&] { onnx::ParseModel(ModelOf(Bytes(5, tensor)), "model"); });
  };
  CHECK(message(Number(1, 2) + Number(2, 1) + Bytes(8, "w") + Bytes(9, "1234")) ==
        "model is not a model that can be read: array 'w' should have 8 bytes, but has 4");
  const uint64_t huge = uint64_t{1} << 62;
  CHECK(message(Number(1, huge) + Number(1, 4) + Number(2, 1) + Bytes(8, "w"))
            .starts_with("model is not a model that can be read: array 'w'"));
  CHECK(message(Number(1, ~uint64_t{0}) + Number(2, 1) + Bytes(8, "w"))
            .starts_with("model is not a model that can be read: array 'w'"));
}

// A model of many small parts, some of which no program would write.
std::string SmallParts(const std::string& kind, int count) {
  std::string parts;
  for (int i = 0; i < count; ++i) {
    parts += kind == "nodes"                 ? Bytes(1, "")
             : kind == "attributes"          ? Bytes(5, Bytes(1, std::to_string(i)))
             : kind == "inputs of a node"    ? Bytes(1, "")
             : kind == "arrays"              ? Bytes(5, Bytes(8, std::to_string(i)))
             : kind == "inputs of the graph" ? Bytes(11, Bytes(2, Bytes(1, "")))
             : kind == "external data"       ? Bytes(13, "")
             : kind == "dimensions"          ? Bytes(1, "")
             : kind == "metadata"            ? Bytes(14, Bytes(1, std::to_string(i)))
             : kind == "nodes of functions"  ? Bytes(7, "")
             : kind == "texts"               ? Bytes(9, "")
             : kind == "numbers"             ? Number(8, 0)
             : kind == "packed integers"     ? std::string(1, '\1')
             : kind == "packed floats"       ? std::string("abcd")
             : kind == "packed lengths"      ? std::string(1, '\1')
             : kind == "unknown numbers"     ? Number(99, 0)
             : kind == "groups"              ? std::string("\x9b\x06\x9c\x06", 4)
                                             : Bytes(99, "");
  }
  const std::string graph = Bytes(1, Bytes(4, "Relu"));
  if (kind == "attributes" || kind == "inputs of a node") return ModelOf(Bytes(1, parts));
  if (kind == "external data") return ModelOf(Bytes(5, Bytes(8, "w") + parts));
  if (kind == "dimensions")
    return ModelOf(Bytes(11, Bytes(2, Bytes(4, Bytes(1, Bytes(1, Bytes(2, parts)))))));
  if (kind == "metadata") return ModelOf(graph) + parts;
  if (kind == "nodes of functions") return ModelOf(graph) + Bytes(25, parts);
  if (kind == "packed integers")
    return ModelOf(Bytes(1, Bytes(5, Bytes(1, "a") + Bytes(8, parts) + Number(20, 7))));
  if (kind == "packed floats")
    return ModelOf(Bytes(1, Bytes(5, Bytes(1, "a") + Bytes(7, parts) + Number(20, 6))));
  if (kind == "packed lengths") return ModelOf(Bytes(5, Bytes(8, "w") + Bytes(1, parts)));
  if (kind == "texts" || kind == "numbers") return ModelOf(Bytes(1, Bytes(5, parts)));
  return ModelOf(parts);
}

TEST_CASE(
    "a small file of many parts takes no more memory than was estimated before it is parsed") {
  if (!onnx::HasOnnxFiles()) return;
  for (const std::string kind :
       {"nodes", "attributes", "inputs of a node", "arrays", "inputs of the graph", "external data",
        "dimensions", "metadata", "nodes of functions", "texts", "numbers", "packed integers",
        "packed floats", "packed lengths", "unknown numbers", "groups", "unknown texts"}) {
    CAPTURE(kind);
    const std::string bytes = SmallParts(kind, 20000);
    const PeakBytes peak;
    MessageOf([&bytes] { onnx::ParseModel(bytes, "model"); });  // a model, or an error
    CHECK(peak.value() <= onnx::EstimateParsedBytes(bytes));
    CHECK(peak.value() > 0);
  }
}

// Protobuf keeps 32 bits of a tag of five bytes and refuses longer ones.
TEST_CASE("a tag that is longer than it need be hides nothing from the estimate") {
  const auto tag = [](int field, uint64_t beyond, size_t bytes) {
    std::string text = Varint(static_cast<uint64_t>(field) << 3 | 2 | beyond);
    while (text.size() < bytes) {
      text.back() = static_cast<char>(text.back() | 0x80);
      text += '\0';
    }
    return text;
  };
  const auto message = [](const std::string& start, const std::string& value) {
    return start + Varint(value.size()) + value;
  };
  const std::string node = Bytes(1, Bytes(1, "x") + Bytes(2, "y") + Bytes(4, "Relu")),
                    plain = ModelOf(node + node + node);
  const int64_t estimate = onnx::EstimateParsedBytes(plain);
  for (const uint64_t beyond : {uint64_t{0}, uint64_t{1} << 32, uint64_t{7} << 32}) {
    CAPTURE(beyond);
    const std::string nested = message(tag(1, beyond, 5), node.substr(2));
    const std::string graph = message(tag(7, beyond, 5), node + nested + node);
    const std::string model = Number(1, 8) + graph + Bytes(8, Number(2, 17));
    CHECK(onnx::EstimateParsedBytes(model) == estimate);
    if (onnx::HasOnnxFiles()) CHECK(onnx::ParseModel(model, "model").nodes.size() == 3);
  }
  const std::string refused = Number(1, 8) + message(tag(7, 0, 6), node);
  CHECK(onnx::EstimateParsedBytes(refused) <
        onnx::EstimateParsedBytes(Number(1, 8) + Bytes(7, "")));
  if (!onnx::HasOnnxFiles()) return;
  CHECK(MessageOf([&refused] { onnx::ParseModel(refused, "model"); }) ==
        "model is not an ONNX model, or is truncated");
}

TEST_CASE("a small file that would take much memory is refused before it is parsed") {
  if (!onnx::HasOnnxFiles()) return;
  const std::string bytes = SmallParts("nodes", 4'000'000);
  const PeakBytes peak;
  CHECK(MessageOf([&bytes] { onnx::ParseModel(bytes, "model"); }) ==
        "model is not a model that can be read: its 8000011 bytes hold so many small parts that "
        "they would take 2197 MiB of memory; 634 are allowed");
  CHECK(peak.value() < 1 << 20);
}

TEST_CASE("external data are read from the folder of the model and from nowhere else") {
  if (!onnx::HasOnnxFiles()) return;
  const TempDir dir;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(dir.path()) / "model";
  fs::create_directories(folder / "more");
  const std::vector<float> numbers{1, 2, 3, 4};
  const auto write = [&](const fs::path& path) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(numbers.data()), 16);
  };
  write(folder / "data.bin");
  write(folder / "more" / "data.bin");
  write(fs::path(dir.path()) / "outside.bin");
  fs::create_symlink("../outside.bin", folder / "link.bin");
  const auto read = [&](const std::string& location, const std::string& offset = "0") {
    return onnx::ParseModel(ModelOf(External(location, offset)), "model", folder.string())
        .initializers.at("w")
        .ToFloats();
  };
  CHECK(read("data.bin") == std::vector<float>{1, 2});
  CHECK(read("data.bin", "8") == std::vector<float>{3, 4});
  CHECK(read("more/data.bin", "4") == std::vector<float>{2, 3});
  for (const std::string& bad : {std::string("../outside.bin"), std::string("link.bin"),
                                 (fs::path(dir.path()) / "outside.bin").string(),
                                 std::string("more/../../outside.bin"), std::string("")}) {
    CAPTURE(bad);
    CHECK(MessageOf([&] {
            read(bad);
          }).starts_with(format("array 'w' lies in '{}', which is not in the folder", bad)));
  }
  CHECK(MessageOf([&] {
          read("data.bin", "12");
        }).starts_with("array 'w' should be 8 bytes at 12 of "));
  CHECK(MessageOf([&] { read("data.bin", "-1"); }) ==
        "array 'w': its offset in another file is '-1', not a number from 0");
  CHECK(!MessageOf([&] { read("missing.bin"); }).empty());
  const std::string absent = (fs::path(dir.path()) / "absent").string();
  CHECK(MessageOf([&] {
          onnx::ParseModel(ModelOf(External("data.bin")), "model", absent);
        }).find(format("cannot find the folder {} of the model", absent)) != std::string::npos);
  // Bytes in memory have no folder.
  CHECK(MessageOf([&] { onnx::ParseModel(ModelOf(External("data.bin")), "model"); }) ==
        "array 'w' lies in another file, 'data.bin', which cannot be read here");
}

TEST_CASE("arrays that share bytes of another file are read once") {
  if (!onnx::HasOnnxFiles()) return;
  const TempDir dir;
  constexpr int kArrays = 20'000;  // reading the file for each would take 300 GB
  constexpr int64_t kBefore = int64_t{16} << 20;
  const std::vector<float> numbers{1, 2, 3, 4};
  {
    std::ofstream file(dir.path("data.bin"), std::ios::binary);
    file.seekp(kBefore);
    file.write(reinterpret_cast<const char*>(numbers.data()), 16);
  }
  std::string arrays;
  for (int i = 0; i < kArrays; ++i)
    arrays += External("data.bin", std::to_string(kBefore + i % 3 * 4), format("w{}", i));
  const onnx::Model model = onnx::ParseModel(ModelOf(arrays), "model", dir.path());
  for (const int i : {0, 1, 2, kArrays - 1}) {
    const auto first = static_cast<float>(1 + i % 3);
    CHECK(model.initializers.at(format("w{}", i)).ToFloats() ==
          std::vector<float>{first, first + 1});
  }
}

}  // namespace
}  // namespace mxtrain::test
