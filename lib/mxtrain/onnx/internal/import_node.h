// SPDX-License-Identifier: Apache-2.0
#pragma once
// One node of an ONNX graph while it is converted to layers, and the net that grows. Private to
// onnx.
//
// Shapes are known for two sizes of the batch, so that what depends on it shows. Numbers that
// follow from shapes are computed for both.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/onnx/import.h"

namespace mxtrain::onnx {

using Shapes = std::array<TShape, 2>;  // for each size of the batch

bool IsInteger(ElementType type);  // not truth values

// A value of the graph: in the net, or known without data.
struct ImportValue {
  Shapes shape;
  std::string reference;  // in the net: an input, LAYER, LAYER.OUTPUT
  int layer = -1;         // that computes it
  std::array<std::shared_ptr<const Tensor>, 2> constant = {};  // null: in the net
  std::string array;                       // the initializer that a constant is, "" for others
  ElementType type = ElementType::kFloat;  // in the file; float32 here
  std::vector<ImportValue> elements = {};  // of a sequence, which has nothing else

  bool is_constant() const { return constant[0] != nullptr; }
  // The same for any batch.
  bool is_array() const {
    return is_constant() &&
           (constant[0] == constant[1] ||
            (constant[0]->dims == constant[1]->dims && constant[0]->bytes == constant[1]->bytes));
  }
};

struct ImportState {
  ImportState(const Model& file, const OperatorRegistry& operators)
      : model(file), registry(operators) {}
  const Model& model;
  const OperatorRegistry& registry;
  std::array<int64_t, 2> batches = {4, 8};
  bool fixed_batch = false;  // batches[0] is the one of the file
  ImportedNet net;
  std::map<std::string, ImportValue> values;  // by name in the file
  std::map<std::string, Shapes> shapes;       // by reference
  std::map<std::string, int> readers;         // of a value of the file; outputs count
  std::set<std::string> names;                // of layers, variables, inputs and layers' arrays
  std::map<std::string, std::string> made;    // parameters by the arrays they were made of

  std::map<std::string, int> suffixes;     // the next to try, by wanted name
  std::shared_ptr<Runtime> runtime;        // that computes constants; made when it is needed
  int64_t file_bytes = 0, net_bytes = 0;   // of arrays
  int64_t computed_bytes = 0;              // of what follows from constants
  std::vector<std::string> integer_nodes;  // that compute with integers of the data
  // For a batch of fixed size: of axes that are k times the batch, by k, how many positions of the
  // axis have one example after the other (1: the examples lie one behind the other).
  std::map<int64_t, std::set<int64_t>> merged;

  // `wanted`, or with a number behind it if that, or it with one of the endings, is taken. All are
  // taken then.
  std::string NewName(const std::string& wanted, const std::vector<std::string>& endings = {});
  // Throws kConfig for more than a few times what the file holds or computes: it must not ask for
  // much more.
  void AddArray(const std::string& name, Tensor tensor);
};

class ImportNode {
 public:
  // An argument of a layer that is an array: `key` identifies it, so that two layers with one
  // array share one parameter.
  struct Argument {
    std::string name;
    Tensor tensor;
    std::string key;  // "": never shared
  };

  ImportNode(const ModelNode& node, ImportState* state);

  // --- what the file says ---
  const std::string& op() const { return node_.op; }
  const std::string& output(size_t i = 0) const { return node_.outputs[i]; }
  int64_t opset() const { return state_.model.opset; }
  bool has(const std::string& attribute) const { return node_.attributes.contains(attribute); }
  int64_t Int(const std::string& attribute, int64_t otherwise) const;
  float Float(const std::string& attribute, float otherwise) const;
  std::string Word(const std::string& attribute, const std::string& otherwise) const;
  std::vector<int64_t> Ints(const std::string& attribute,
                            const std::vector<int64_t>& otherwise = {}) const;
  std::vector<float> Numbers(const std::string& attribute) const;      // none: empty
  std::vector<std::string> Words(const std::string& attribute) const;  // none: empty
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool has(int input) const;
  const ImportValue& in(int i) const;  // throws kData if the node lacks it
  const TShape& shape(int i, int batch = 0) const {
    return in(i).shape[static_cast<size_t>(batch)];
  }
  int ndim(int i = 0) const { return shape(i).ndim(); }
  bool is_array(int i) const { return has(i) && in(i).is_array(); }
  bool is_integers(int i) const { return has(i) && IsInteger(in(i).type); }
  bool is_truth(int i) const { return has(i) && in(i).type == ElementType::kBool; }
  bool DependsOnBatch(int i, int axis) const { return shape(i)[axis] != shape(i, 1)[axis]; }
  const Tensor& array(int i) const;  // throws kConfig unless it is one
  std::vector<int64_t> ints(int i) const { return array(i).ToInts(); }
  // Since some opset an input, before it an attribute: axes of Squeeze, of reductions.
  std::optional<std::vector<int64_t>> IntsOfInputOr(int i, const std::string& attribute) const;
  std::optional<float> NumberOfInputOr(int i, const std::string& attribute) const;
  int Axis(int64_t axis, int ndim) const;  // throws kData out of range
  bool OnlyReader(int i) const;            // no other node reads this input
  bool fixed_batch() const { return state_.fixed_batch; }

  // --- what the net gets ---
  // An input of a layer. A constant becomes a Variable, of at least `ndim` axes; one that depends
  // on the batch is repeated for every example.
  std::string ref(int i, int ndim = 0);
  // A constant that holds for the batch of the file alone: its only row, for every example of a
  // batch along the axis.
  std::string ForEveryExample(int i, int axis);
  // A layer whose result other layers of this node read.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const Kwargs& params = {}, std::vector<Argument> arguments = {});
  // All outputs of such a layer.
  std::vector<std::string> AddAll(const std::string& op, const std::vector<std::string>& inputs,
                                  const Kwargs& params);
  // The layer of the node's output.
  void Out(const std::string& op, const std::vector<std::string>& inputs, const Kwargs& params = {},
           std::vector<Argument> arguments = {}, int output = 0);
  // All outputs of one layer.
  void OutAll(const std::string& op, const std::vector<std::string>& inputs, const Kwargs& params);
  void OutIs(const std::string& reference, int output = 0);
  // `array`: the file's array that it stands for, "" for none.
  void OutArray(const Tensor& tensor, const std::string& array);
  void OutConstant(std::array<std::shared_ptr<const Tensor>, 2> tensors, int output = 0);
  // An input as the argument `name`, changed or not.
  Argument ArgumentOf(int i, const std::string& name) const;
  Argument ArgumentOf(int i, const std::string& name, Tensor changed, const std::string& how) const;
  // The value in these shapes, one for each batch.
  std::string Reshape(const std::string& reference, const Shapes& to);
  const Shapes& ShapesOf(const std::string& reference) const;
  ImportedNet::Layer* LayerOf(int i);  // that computes an input; null if none
  // A constant as long as the batch whose elements are all the same, as one element.
  bool is_one_number(int i) const;
  std::string OneNumber(int i, int ndim);
  // An array of the import's own, such as a mask, which training leaves alone.
  std::string OwnArray(const std::string& what, const Tensor& tensor);
  // One that is made of arrays of the file, and that training changes.
  std::string OwnParameter(const std::string& what, const Tensor& tensor);
  // An input with axes of length 1 in front.
  std::string OfRank(int i, int ndim);
  // Gives a layer without bias one, and its output to this node.
  void AddBias(int data, int bias);
  // With an axis of length 1 repeated for every example of the batch.
  std::string LikeBatch(const std::string& reference, int axis);
  void NameAfter(const std::string& array);  // the layer of "fc.weight" is "fc"

  ImportState& state() { return state_; }
  const ImportState& state() const { return state_; }

  template <typename... Args>
  [[noreturn]] void Refuse(fmt::format_string<Args...> text, Args&&... args) const {
    ThrowRefusal(fmt::format(text, std::forward<Args>(args)...));
  }
  // What holds for the batch of the file alone.
  template <typename... Args>
  [[noreturn]] void RefuseFixed(fmt::format_string<Args...> text, Args&&... args) const {
    ThrowFixed(fmt::format(text, std::forward<Args>(args)...));
  }
  std::string Describe() const;  // "Conv '/conv1/Conv'"

 private:
  [[noreturn]] void ThrowFixed(const std::string& what) const;
  [[noreturn]] void ThrowRefusal(const std::string& reason) const;
  const Attribute* Find(const std::string& attribute) const;
  std::string NewArray(const std::string& what, const Tensor& tensor, bool fixed);
  // The part of a constant that is repeated for every example, as often as the batch is long.
  std::string OverBatch(int i, int ndim);
  // A Variable with these elements, one for each array of the file and rank.
  std::string Variable(const std::string& file_name, const Tensor& tensor);
  // Adds the layer; returns its outputs.
  std::vector<std::string> AddLayer(const std::string& op, const std::string& name,
                                    const std::vector<std::string>& inputs, const Kwargs& params,
                                    std::vector<Argument> arguments);
  // Throws kConfig unless the layer takes an array of this shape as its argument.
  void CheckTaken(const std::string& argument, const TShape& shape,
                  const std::vector<std::string>& names, const std::vector<TShape>& in,
                  const std::vector<std::string>& states, const std::vector<TShape>& aux) const;

  const ModelNode& node_;
  ImportState& state_;
  std::string name_;  // of the layer
};

using ImportFn = void (*)(ImportNode& node);
struct ImportEntry {
  const char* op;
  ImportFn convert;
};
// The families; a file each.
std::vector<ImportEntry> LayerImports();        // import_layers.cc
std::vector<ImportEntry> NormImports();         // import_norms.cc
std::vector<ImportEntry> ElementwiseImports();  // import_elementwise.cc
std::vector<ImportEntry> ShapeImports();        // import_shapes.cc
std::vector<ImportEntry> ArrayImports();        // import_arrays.cc
std::vector<ImportEntry> IndexImports();        // import_indices.cc
std::vector<ImportEntry> SamplingImports();     // import_sampling.cc
std::vector<ImportEntry> ResizeImports();       // import_resize.cc
std::vector<ImportEntry> AttentionImports();    // import_attention.cc
std::vector<ImportEntry> LossImports();         // import_losses.cc
std::vector<ImportEntry> ProductImports();      // import_products.cc
std::vector<ImportEntry> QuantizedImports();    // import_quantized.cc
std::vector<ImportEntry> SequenceImports();     // import_sequences.cc
std::vector<ImportEntry> PoolImports();         // import_pools.cc
std::vector<ImportEntry> FunctionImports();     // import_functions.cc
std::vector<ImportEntry> RecurrentImports();    // import_recurrent.cc

// The outputs of a node whose inputs are known (null: omitted), computed by the layers that
// `convert` makes of it; nothing for one without equivalent. Integers above 2^24 and layers that
// take more than `most_bytes` together are refused.
std::vector<std::optional<Tensor>> ComputeByLayers(const ModelNode& node, ImportFn convert,
                                                   ImportState& state,
                                                   const std::vector<const Tensor*>& inputs,
                                                   int64_t most_bytes);

// Of an output, by those of the inputs (float for one that is omitted).
ElementType TypeOfOutput(const ModelNode& node, size_t output,
                         const std::vector<ElementType>& inputs);

// Removes layers and variables that no output depends on, such as those of which the shapes alone
// are read, with their arrays.
void DropUnread(ImportedNet* net);
// That the net takes every array, in its shape, and makes none of its own: else kBug.
void CheckArrays(const ImportState& state);

// Letters, digits and single underscores: in a configuration a dot selects an output of a layer.
std::string AsName(std::string_view text);
TShape ShapeOf(const Tensor& tensor);  // throws kData for more than TShape::kMaxDims axes
// The largest integer up to which all are float32 numbers.
inline constexpr int64_t kMostExact = int64_t{1} << 24;

}  // namespace mxtrain::onnx
