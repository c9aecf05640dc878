// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/export.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/onnx/internal/export_parts.h"
#include "mxtrain/operator/zeros_if_missing.h"

namespace mxtrain::onnx {
namespace {

// Two sizes of the batch show what depends on it.
constexpr int64_t kBatches[] = {4, 8};

const std::map<std::string_view, ExportFn>& ExportConverters() {
  static const std::map<std::string_view, ExportFn> converters = [] {
    std::map<std::string_view, ExportFn> all;
    for (const auto& family : {LayerExports(), NormExports(), ElementwiseExports(), ShapeExports(),
                               ArrayExports(), IndexExports(), SamplingExports(), BoxExports(),
                               AnchorExports(), RotationExports(), RecurrentExports()}) {
      for (const ExportEntry& entry : family) all.emplace(entry.op, entry.convert);
    }
    return all;
  }();
  return converters;
}

// Operators that move elements or read indices, whatever their type.
bool TakesIntegers(const std::string& op) {
  static const std::set<std::string> ops = {"Cast",
                                            "Embedding",
                                            "take",
                                            "pick",
                                            "batch_take",
                                            "gather_nd",
                                            "scatter_nd",
                                            "one_hot",
                                            "shape_array",
                                            "size_array",
                                            "SequenceMask",
                                            "SequenceLast",
                                            "SequenceReverse",
                                            "Reshape",
                                            "reshape_like",
                                            "Flatten",
                                            "squeeze",
                                            "expand_dims",
                                            "_reshape_to",
                                            "slice",
                                            "slice_axis",
                                            "transpose",
                                            "image_normalize"};
  return ops.contains(op);
}

class Exporter {
 public:
  explicit Exporter(const ExportRequest& request)
      : request_(request), graph_(request.symbol.graph()), builder_(&model_) {}

  Model Run() {
    model_.opset = kExportOpset;
    model_.producer = "mxtrain";
    model_.graph_name = "net";
    model_.metadata = request_.metadata;
    Infer();
    ExpandComposites();
    ReserveNames();
    const std::set<int> omitted = OmittedZeros();
    for (const mxtrain::Node& node : graph_.nodes) {
      std::vector<std::string>& names = names_.emplace_back();
      if (node.is_variable()) {
        names = {NameOfVariable(node)};
      } else if (omitted.contains(static_cast<int>(names_.size()) - 1)) {
        names = {""};
      } else {
        names = Convert(node);
      }
    }
    AddOutputs();
    RemoveUnread();
    TellNodesApart();
    return std::move(model_);
  }

 private:
  void Infer() {
    std::map<std::string, DType> types;
    std::map<std::string, TShape> shapes;
    for (const auto* arrays : {request_.args, request_.auxs}) {
      for (const auto& [name, array] : *arrays) shapes[name] = array.shape();
    }
    for (int i = 0; i < 2; ++i) {
      for (const ExportInput& input : request_.inputs) {
        std::vector<int64_t> dims{kBatches[i]};
        dims.insert(dims.end(), input.shape.begin(), input.shape.end());
        shapes[input.name] = TShape(std::span<const int64_t>(dims));
        types[input.name] = input.type;
      }
      specs_[i] = InferSpecs(graph_, shapes, types, /*allow_partial=*/false);
    }
    shapes_ = specs_[0].shapes;
    types_ = specs_[0].types;
    for (size_t node = 0; node < shapes_.size(); ++node) {
      for (size_t output = 0; output < shapes_[node].size(); ++output)
        shapes_[node][output] =
            MergedShape(specs_[0].shapes[node][output], specs_[1].shapes[node][output]);
    }
  }

  // Of every node, the outputs that other nodes read or that the net gives.
  std::vector<std::set<int>> ReadOutputs() const {
    std::vector<std::set<int>> read(graph_.nodes.size());
    const auto note = [&read](NodeEntry entry) {
      read[static_cast<size_t>(entry.node)].insert(entry.index);
    };
    for (const mxtrain::Node& node : graph_.nodes) std::ranges::for_each(node.inputs, note);
    std::ranges::for_each(graph_.heads, note);
    return read;
  }

  // Zeros that stand for missing arguments, and that nothing else reads.
  std::set<int> OmittedZeros() const {
    std::set<int> zeros, read;
    for (const mxtrain::Node& node : graph_.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const int from = node.inputs[i].node;
        const mxtrain::Node& source = graph_.nodes[static_cast<size_t>(from)];
        const bool is_zeros = !source.is_variable() && source.op->TypeString() == "_zeros";
        const bool missing = is_zeros && IsZeroIfMissing(*node.op, static_cast<int>(i));
        (missing ? zeros : read).insert(from);
      }
    }
    for (const NodeEntry head : graph_.heads) read.insert(head.node);
    std::erase_if(zeros, [&read](int node) { return read.contains(node); });
    return zeros;
  }

  const OperatorRegistry& Operators() {
    if (request_.operators) return *request_.operators;
    if (!registry_) registry_ = BuiltinOperators();
    return *registry_;
  }

  // Finds the parts of layers without a converter. Names all that have none at once.
  void ExpandComposites() {
    const auto has_converter = [](const std::string& op) {
      return ExportConverters().contains(op);
    };
    std::set<std::string> missing;
    const std::vector<std::set<int>> read = ReadOutputs();
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const mxtrain::Node& node = graph_.nodes[id];
      if (node.is_variable() || has_converter(node.op->TypeString())) continue;
      std::vector<ExportArgument> arguments;
      for (int i = 0; i < node.num_args; ++i) {
        const NodeEntry entry = node.inputs[static_cast<size_t>(i)];
        const auto from = static_cast<size_t>(entry.node), index = static_cast<size_t>(entry.index);
        arguments.push_back(
            {{specs_[0].shapes[from][index], specs_[1].shapes[from][index]}, types_[from][index]});
      }
      std::optional<ExportParts> parts =
          FindParts(node, arguments, read[id], Operators(), has_converter);
      if (parts) {
        parts_[id] = std::move(*parts);
      } else {
        missing.insert(DescribeNode(node));
      }
    }
    if (missing.empty()) return;
    Throw(ErrorKind::kConfig, "no ONNX equivalent is known here for {}",
          join(std::vector<std::string>(missing.begin(), missing.end()), ", "));
  }

  const TShape& ShapeOf(NodeEntry entry) const {
    return shapes_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }

  // Inputs and arrays keep their names, whatever the layers before them make.
  void ReserveNames() {
    for (const mxtrain::Node& node : graph_.nodes) {
      if (node.is_variable()) builder_.NewName(node.name);
    }
  }

  // "" for a label.
  std::string NameOfVariable(const mxtrain::Node& node) {
    const auto input = std::ranges::find(request_.inputs, node.name, &ExportInput::name);
    if (input != request_.inputs.end()) {
      model_.inputs.push_back(ValueOf(node.name, shapes_[names_.size() - 1][0], input->type));
      return node.name;
    }
    const auto& arrays = node.kind == mxtrain::Node::Kind::kAux ? *request_.auxs : *request_.args;
    const auto found = arrays.find(node.name);
    if (found == arrays.end()) return "";
    const NDArray& array = found->second;
    model_.initializers[node.name] =
        Tensor::Floats({array.shape().begin(), array.shape().end()}, array.ToVector());
    return node.name;
  }

  static ModelValue ValueOf(const std::string& name, const TShape& shape, DType type) {
    ModelValue value;
    value.name = name;
    value.type = TypeOf(type, name);
    for (const int64_t dim : shape) {
      value.dims.push_back(dim == TShape::kUnknown ? ModelValue::kDynamic : dim);
      const bool batch = dim == TShape::kUnknown && value.dims.size() == 1;
      value.dim_names.push_back(batch ? "N" : "");
    }
    return value;
  }
  static ElementType TypeOf(DType type, const std::string& name) {
    switch (type) {
      case DType::kFloat32:
        return ElementType::kFloat;
      case DType::kInt32:
        return ElementType::kInt32;
      case DType::kInt64:
        return ElementType::kInt64;
      case DType::kUint8:
        return ElementType::kUint8;
      default:
        Throw(ErrorKind::kConfig, "'{}' is {}, which cannot be exported; expected float32", name,
              mxtrain::NameOf(type));
    }
  }

  // Integers are for operators that take them in ONNX, too.
  static void CheckType(const std::string& name, DType type, const mxtrain::Node& node) {
    if (name.empty() || type == DType::kFloat32 || TakesIntegers(node.op->TypeString())) return;
    Throw(ErrorKind::kConfig,
          "{} reads '{}', which is {}; only its float32 form has an equivalent in ONNX: put a Cast "
          "before it",
          DescribeNode(node), name, mxtrain::NameOf(type));
  }

  using Value = ExportNode::Array;

  std::vector<std::string> Convert(const mxtrain::Node& node) {
    std::vector<Value> inputs;
    for (const NodeEntry& entry : node.inputs) {
      const auto id = static_cast<size_t>(entry.node), index = static_cast<size_t>(entry.index);
      const std::string& name = names_[id][index];
      const mxtrain::Node& from = graph_.nodes[id];
      const bool omitted = name.empty() && !from.is_variable() &&
                           IsZeroIfMissing(*node.op, static_cast<int>(inputs.size()));
      if (name.empty() && !from.is_variable() && !omitted) {
        Throw(ErrorKind::kConfig, "{} reads output '{}' of {}, which ONNX does not have",
              DescribeNode(node), from.op->ListOutputs()[index], DescribeNode(from));
      }
      inputs.push_back({name,
                        ShapeOf(entry),
                        types_[id][index],
                        {specs_[0].shapes[id][index], specs_[1].shapes[id][index]},
                        omitted});
    }
    const size_t id = names_.size() - 1;
    const auto parts = parts_.find(id);
    if (parts == parts_.end()) return ConvertBy(node, inputs, shapes_[id]);
    try {
      return ConvertParts(parts->second, inputs);
    } catch (const Error&) {
      RethrowWithPrefix(std::current_exception(), DescribeNode(node));
    }
  }

  // By the converter of its operator.
  std::vector<std::string> ConvertBy(const mxtrain::Node& node, const std::vector<Value>& inputs,
                                     const std::vector<TShape>& outputs) {
    for (const Value& input : inputs) CheckType(input.name, input.type, node);
    ExportNode step(node, inputs, outputs, &builder_);
    ExportConverters().at(node.op->TypeString())(step);
    return step.results();
  }

  std::vector<std::string> ConvertParts(const ExportParts& layer,
                                        const std::vector<Value>& arguments) {
    std::vector<std::vector<Value>> made;
    const auto value_of = [&](Lowering::Value value) -> const Value& {
      const auto output = static_cast<size_t>(value.output);
      return value.step < 0 ? arguments[output] : made[static_cast<size_t>(value.step)][output];
    };
    for (const ExportPart& part : layer.parts) {
      std::vector<Value>& outputs = made.emplace_back(part.shapes.size());  // without names
      if (!part.needed) continue;
      mxtrain::Node node;
      node.kind = mxtrain::Node::Kind::kForward;
      node.name = part.name;
      node.op = part.op;
      std::vector<Value> inputs;
      for (const Lowering::Value value : part.inputs) inputs.push_back(value_of(value));
      const std::vector<std::string> names = ConvertBy(node, inputs, part.shapes);
      for (size_t i = 0; i < names.size(); ++i)
        outputs[i] = {names[i], part.shapes[i], part.types[i]};
    }
    std::vector<std::string> results;
    for (const Lowering::Value value : layer.outputs) results.push_back(value_of(value).name);
    return results;
  }

  void AddOutputs() {
    const std::vector<std::string> wanted = request_.symbol.ListOutputs();
    for (size_t i = 0; i < graph_.heads.size(); ++i) {
      const NodeEntry head = graph_.heads[i];
      std::string name = names_[static_cast<size_t>(head.node)][static_cast<size_t>(head.index)];
      if (name.empty())
        Throw(ErrorKind::kConfig, "the output '{}' cannot be exported to ONNX", wanted[i]);
      // An output of its own name, which no input or other output is.
      if (name != wanted[i])
        name = builder_.Add("Identity", {name}, {}, builder_.NewName(wanted[i]));
      model_.outputs.push_back(
          ValueOf(name, ShapeOf(head),
                  types_[static_cast<size_t>(head.node)][static_cast<size_t>(head.index)]));
    }
  }

  // Nodes and arrays that no output depends on: gamma of a batch norm that does not read it.
  void RemoveUnread() {
    std::set<std::string> read;
    for (const ModelValue& output : model_.outputs) read.insert(output.name);
    std::vector<ModelNode> kept;
    for (auto node = model_.nodes.rbegin(); node != model_.nodes.rend(); ++node) {
      const bool wanted = std::ranges::any_of(
          node->outputs, [&read](const std::string& name) { return read.contains(name); });
      if (!wanted) continue;
      read.insert(node->inputs.begin(), node->inputs.end());
      kept.push_back(std::move(*node));
    }
    std::reverse(kept.begin(), kept.end());
    model_.nodes = std::move(kept);
    std::erase_if(model_.initializers,
                  [&read](const auto& array) { return !read.contains(array.first); });
  }

  // onnxruntime refuses two nodes of one name.
  void TellNodesApart() {
    std::set<std::string> taken;
    for (ModelNode& node : model_.nodes) {
      const std::string wanted = node.name;
      for (int i = 1; !taken.insert(node.name).second; ++i) node.name = format("{}_{}", wanted, i);
    }
  }

  const ExportRequest& request_;
  const Graph& graph_;
  Model model_;
  ModelBuilder builder_;
  InferredSpecs specs_[2];  // for two sizes of the batch
  std::shared_ptr<const OperatorRegistry> registry_;
  std::map<size_t, ExportParts> parts_;      // of nodes without a converter
  std::vector<std::vector<TShape>> shapes_;  // kUnknown: depends on the batch
  std::vector<std::vector<DType>> types_;
  std::vector<std::vector<std::string>> names_;  // of every output of the nodes so far
};

}  // namespace

Model ExportModel(const ExportRequest& request) {
  return Exporter(request).Run();
}

}  // namespace mxtrain::onnx
