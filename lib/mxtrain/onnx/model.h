// SPDX-License-Identifier: Apache-2.0
#pragma once
// An ONNX model in memory: what ModelProto (onnx.proto) holds, as far as nets need it. Only
// model_file.h's functions know of protobuf. Plain values; copy and read them from any thread.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::onnx {

// The numbers are those of TensorProto.DataType.
enum class ElementType : int {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
};
MXTRAIN_API const char* NameOf(ElementType type);  // "float", "int64", ...
// Bytes of an element; 0 for types without a fixed size (strings) and those unknown here.
MXTRAIN_API int64_t SizeOf(ElementType type);

// Elements in row-major order, little-endian. No dimensions: a scalar.
struct MXTRAIN_API Tensor {
  ElementType type = ElementType::kFloat;
  std::vector<int64_t> dims;
  std::string bytes;

  static Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& values);
  static Tensor Ints(std::vector<int64_t> dims, const std::vector<int64_t>& values);
  static Tensor Scalar(float value) { return Floats({}, {value}); }

  int64_t Size() const;  // number of elements; throws kData for more than TShape::kMaxSize
  // Converted. Throw kData for types that are no numbers; ToInts for numbers that are not whole.
  std::vector<float> ToFloats() const;
  std::vector<double> Doubles() const;
  std::vector<int64_t> ToInts() const;
};

// Of a kind that this program does not read: a sparse tensor, a type, several graphs.
struct OpaqueAttribute {
  std::string kind;
};
struct ModelGraph;
using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, Tensor,
                               std::shared_ptr<const ModelGraph>, OpaqueAttribute>;
using Attributes = std::map<std::string, Attribute>;

// An application of an operator. An omitted input or trailing output is "".
struct ModelNode {
  std::string op, name;
  std::string domain;  // "": ONNX's own operators
  std::vector<std::string> inputs, outputs;
  Attributes attributes;
};

// A graph within a node, as a branch of If is. Its nodes may read what the graph around it has
// computed.
struct ModelGraph {
  std::vector<ModelNode> nodes;
  std::map<std::string, Tensor> initializers;
  std::vector<std::string> inputs, outputs;
};

// An input or output of the graph.
struct ModelValue {
  static constexpr int64_t kDynamic = -1;
  std::string name;
  ElementType type = ElementType::kFloat;
  bool has_shape = true;
  std::vector<int64_t> dims;           // kDynamic: of any length
  std::vector<std::string> dim_names;  // of the dynamic ones; may be shorter than dims
};

struct Model {
  int64_t opset = 0;  // of ONNX's own operators
  std::string producer, graph_name;
  std::vector<ModelNode> nodes;  // in any order
  std::map<std::string, Tensor> initializers;
  std::vector<ModelValue> inputs, outputs;  // initializers are not among the inputs
  std::map<std::string, std::string> metadata;
};

}  // namespace mxtrain::onnx
