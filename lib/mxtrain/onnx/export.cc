// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/export.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

// Two sizes of the batch show what depends on it.
constexpr int64_t kBatches[] = {4, 8};

const std::map<std::string_view, ExportFn>& Converters() {
  static const std::map<std::string_view, ExportFn> converters = [] {
    std::map<std::string_view, ExportFn> all;
    for (const auto& family :
         {LayerExports(), NormExports(), ElementwiseExports(), ShapeExports(), ArrayExports()}) {
      for (const ExportEntry& entry : family) all.emplace(entry.op, entry.convert);
    }
    return all;
  }();
  return converters;
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
    CheckOperators();
    Infer();
    for (const mxtrain::Node& node : graph_.nodes) {
      std::vector<std::string>& names = names_.emplace_back();
      if (node.is_variable()) {
        names = {NameOfVariable(node)};
      } else {
        names = Convert(node);
      }
    }
    AddOutputs();
    RemoveUnread();
    return std::move(model_);
  }

 private:
  // All that are missing at once.
  void CheckOperators() const {
    std::set<std::string> missing;
    for (const mxtrain::Node& node : graph_.nodes) {
      if (!node.is_variable() && !Converters().contains(node.op->TypeString()))
        missing.insert(DescribeNode(node));
    }
    if (missing.empty()) return;
    Throw(ErrorKind::kConfig, "no ONNX equivalent is known here for {}",
          join(std::vector<std::string>(missing.begin(), missing.end()), ", "));
  }

  void Infer() {
    std::map<std::string, DType> types;
    std::map<std::string, TShape> shapes;
    for (const auto* arrays : {request_.args, request_.auxs}) {
      for (const auto& [name, array] : *arrays) shapes[name] = array.shape();
    }
    InferredSpecs specs[2];
    for (int i = 0; i < 2; ++i) {
      for (const ExportInput& input : request_.inputs) {
        std::vector<int64_t> dims{kBatches[i]};
        dims.insert(dims.end(), input.shape.begin(), input.shape.end());
        shapes[input.name] = TShape(std::span<const int64_t>(dims));
        types[input.name] = input.type;
      }
      specs[i] = InferSpecs(graph_, shapes, types, /*allow_partial=*/false);
    }
    shapes_ = std::move(specs[0].shapes);
    types_ = std::move(specs[0].types);
    for (size_t node = 0; node < shapes_.size(); ++node) {
      for (size_t output = 0; output < shapes_[node].size(); ++output) {
        TShape& shape = shapes_[node][output];
        const TShape& other = specs[1].shapes[node][output];
        for (int axis = 0; axis < shape.ndim(); ++axis) {
          if (shape[axis] != other[axis]) shape[axis] = TShape::kUnknown;
        }
      }
    }
  }

  const TShape& ShapeOf(NodeEntry entry) const {
    return shapes_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }

  // "" for a label.
  std::string NameOfVariable(const mxtrain::Node& node) {
    const auto input = std::ranges::find(request_.inputs, node.name, &ExportInput::name);
    if (input != request_.inputs.end()) {
      builder_.NewName(node.name);
      model_.inputs.push_back(ValueOf(node.name, shapes_[names_.size() - 1][0], input->type));
      return node.name;
    }
    const auto& arrays = node.kind == mxtrain::Node::Kind::kAux ? *request_.auxs : *request_.args;
    const auto found = arrays.find(node.name);
    if (found == arrays.end()) return "";
    const NDArray& array = found->second;
    builder_.NewName(node.name);
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

  // What the node reads as float32, except for operators that take integers in ONNX, too.
  std::string InNumbers(const std::string& name, NodeEntry entry, const mxtrain::Node& node) {
    const DType type = types_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
    if (name.empty() || type == DType::kFloat32) return name;
    const std::string op = node.op->TypeString();
    if (op == "Cast")
      return builder_.Add("Cast", {name}, {{"to", static_cast<int64_t>(ElementType::kFloat)}},
                          builder_.NewName(name + "_float"));
    static const std::set<std::string> any = {"Embedding",   "take",    "Reshape",
                                              "Flatten",     "squeeze", "expand_dims",
                                              "_reshape_to", "slice",   "slice_axis"};
    if (!any.contains(op))
      Throw(
          ErrorKind::kConfig,
          "{} reads '{}', which is {}; only its float32 form has an equivalent in ONNX: put a Cast "
          "before it",
          DescribeNode(node), name, mxtrain::NameOf(type));
    return name;
  }

  std::vector<std::string> Convert(const mxtrain::Node& node) {
    std::vector<ExportNode::Array> inputs;
    for (const NodeEntry& entry : node.inputs) {
      const std::string& name =
          names_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
      const mxtrain::Node& from = graph_.nodes[static_cast<size_t>(entry.node)];
      if (name.empty() && !from.is_variable()) {
        Throw(ErrorKind::kConfig, "{} reads output '{}' of {}, which ONNX does not have",
              DescribeNode(node), from.op->ListOutputs()[static_cast<size_t>(entry.index)],
              DescribeNode(from));
      }
      inputs.push_back({InNumbers(name, entry, node), ShapeOf(entry)});
    }
    ExportNode step(node, std::move(inputs), shapes_[names_.size() - 1], &builder_);
    Converters().at(node.op->TypeString())(step);
    return step.results();
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

  const ExportRequest& request_;
  const Graph& graph_;
  Model model_;
  ModelBuilder builder_;
  std::vector<std::vector<TShape>> shapes_;
  std::vector<std::vector<DType>> types_;
  std::vector<std::vector<std::string>> names_;  // of every output of the nodes so far
};

}  // namespace

Model ExportModel(const ExportRequest& request) {
  return Exporter(request).Run();
}

}  // namespace mxtrain::onnx
