// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operator of a net while it is converted to ONNX, and the model that grows. Private to onnx.
//
// Shapes are inferred for two sizes of the batch; an axis whose lengths differ depends on it and is
// TShape::kUnknown here.
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/onnx/model.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::onnx {

// Gives every value of the model its name, once.
class ModelBuilder {
 public:
  explicit ModelBuilder(Model* model) : model_(*model) {}
  Model& model() { return model_; }
  // `wanted`, or with a number behind it if that is taken.
  std::string NewName(const std::string& wanted);
  // Adds a node with one output, whose name is returned.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const Attributes& attributes, const std::string& output);
  std::string AddArray(Tensor tensor, const std::string& wanted);

 private:
  Model& model_;
  std::set<std::string> names_;
};

class ExportNode {
 public:
  struct Array {
    std::string name;  // "" for a label that is skipped
    TShape shape;
    DType type = DType::kUnknown;
    std::array<TShape, 2> of_batches = {};  // the shape for two sizes of the batch; none: a part's
    bool omitted = false;  // zeros that the operator takes for a missing argument; without a name
  };
  ExportNode(const mxtrain::Node& node, std::vector<Array> inputs, std::vector<TShape> outputs,
             ModelBuilder* builder);

  // --- what the net says ---
  const std::string& op() const { return op_; }
  const std::string& name() const { return node_.name; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const std::string& in(int i) const;  // throws kConfig for a label
  bool is_omitted(int i) const { return inputs_[static_cast<size_t>(i)].omitted; }
  const TShape& in_shape(int i) const { return inputs_[static_cast<size_t>(i)].shape; }
  DType in_type(int i) const { return inputs_[static_cast<size_t>(i)].type; }
  // Whether an axis is as long as the same one of another input, whatever the batch.
  bool SameLength(int a, int b, int axis) const;
  const TShape& out_shape(int i = 0) const { return out_shapes_[static_cast<size_t>(i)]; }
  int ndim() const { return in_shape(0).ndim(); }
  // A parameter of the operator by name. Throws kBug if there is none.
  template <typename T>
  T Get(std::string_view name) const {
    T value{};
    params::Parse(Text(name), &value);
    return value;
  }
  const std::string& Text(std::string_view name) const;  // as MXNet prints it
  float Number(std::string_view name) const { return static_cast<float>(Get<double>(name)); }
  bool Is(std::string_view name, std::string_view value) const { return Text(name) == value; }
  int64_t Truncated(double value) const;  // throws kConfig for what no integer is
  int Axis(std::string_view name) const { return Axis(Get<int>(name), ndim()); }
  static int Axis(int axis, int ndim) { return axis < 0 ? axis + ndim : axis; }

  // --- what ONNX gets ---
  // An intermediate value.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const Attributes& attributes = {});
  // The node's own output.
  void Out(const std::string& op, const std::vector<std::string>& inputs,
           const Attributes& attributes = {}, int output = 0);
  void OutIs(const std::string& value, int output = 0);  // the output is that value
  // Several outputs of one ONNX node.
  void OutAll(const std::string& op, const std::vector<std::string>& inputs,
              const Attributes& attributes);
  std::string NewValue(int output);  // an unused name for an output that Add of a builder makes
  // Arrays.
  std::string Scalar(float value);
  std::string Ints(const std::vector<int64_t>& values);
  std::string Floats(std::vector<int64_t> dims, const std::vector<float>& values);
  std::string Int(int64_t value);  // without axes
  // The length of an axis of an input, as integers [1]; its positions 0, 1, ..., as integers.
  std::string LengthOf(int input, int axis);
  std::string PositionsOf(int input, int axis);
  // Reductions; axes are an input since opset 18, and since 13 for sums.
  std::string Reduce(const std::string& op, const std::string& value,
                     const std::vector<int64_t>& axes, bool keep);
  // The value in the shape of `to`, of which one axis may depend on the batch.
  std::string Reshape(const std::string& value, const TShape& from, const TShape& to);
  std::string Transpose(const std::string& value, const std::vector<int64_t>& order);
  // [length] as [1, ..., length, ..., 1], for broadcasting along `axis` of `ndim` axes.
  std::string AlongAxis(const std::string& value, int64_t length, int axis, int ndim);
  std::string Unsqueeze(const std::string& value, const std::vector<int64_t>& axes);
  // The first `count` (integers [1]) elements along an axis in order, equal ones in that of their
  // indices, and these.
  struct Order {
    std::string values, indices;
  };
  Order TopK(const std::string& value, const std::string& count, int axis, bool largest = true);
  std::string AsBool(const std::string& value);
  std::string AsFloat(const std::string& value);
  std::string AsInt(const std::string& value);  // fractions are truncated
  // Integers within 0 .. length - 1: an index out of range becomes the nearest one in it or, with
  // `wrap`, counts modulo the length.
  std::string AsIndices(const std::string& value, int64_t length, bool wrap = false);
  // The value in the type `dtype` says, or the output in it. Throw kConfig for types that are not
  // exported.
  std::string As(const std::string& dtype, const std::string& value);
  void OutAs(const std::string& dtype, const std::string& value, int output = 0);

  ModelBuilder& builder() { return builder_; }
  // The names of the outputs, "" for those that were not made.
  const std::vector<std::string>& results() const { return results_; }

  // Throws kConfig: "the operator X 'node' (file:line) cannot be exported to ONNX: ...".
  template <typename... Args>
  [[noreturn]] void Refuse(fmt::format_string<Args...> text, Args&&... args) const {
    ThrowRefusal(fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  ElementType TypeOf(const std::string& dtype) const;
  [[noreturn]] void ThrowRefusal(const std::string& reason) const;

  const mxtrain::Node& node_;
  const std::string op_;
  const std::vector<Array> inputs_;
  const std::vector<TShape> out_shapes_;
  const Kwargs params_;
  ModelBuilder& builder_;
  std::vector<std::string> results_;
};

// Converts the node: calls Out or OutIs for its outputs.
using ExportFn = void (*)(ExportNode& node);
struct ExportEntry {
  const char* op;  // canonical name of the registry
  ExportFn convert;
};
// The families; a file each.
std::vector<ExportEntry> LayerExports();        // export_layers.cc
std::vector<ExportEntry> NormExports();         // export_norms.cc
std::vector<ExportEntry> ElementwiseExports();  // export_elementwise.cc
std::vector<ExportEntry> ShapeExports();        // export_shapes.cc
std::vector<ExportEntry> ArrayExports();        // export_arrays.cc
std::vector<ExportEntry> IndexExports();        // export_indices.cc
std::vector<ExportEntry> SamplingExports();     // export_sampling.cc
std::vector<ExportEntry> BoxExports();          // export_boxes.cc
std::vector<ExportEntry> AnchorExports();       // export_anchors.cc
std::vector<ExportEntry> RotationExports();     // export_rotations.cc
std::vector<ExportEntry> RecurrentExports();    // export_recurrent.cc

}  // namespace mxtrain::onnx
