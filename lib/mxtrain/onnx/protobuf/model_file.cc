// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/model_file.h"

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <limits>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/onnx/internal/external_data.h"
#include "mxtrain/onnx/internal/wire_scan.h"

namespace mxtrain::onnx {
namespace {

constexpr int64_t kIrVersion = 8;  // of ONNX 1.12, which has opset 17
constexpr size_t kMostFileBytes = std::numeric_limits<int32_t>::max();
constexpr int kMostNodes = 1'000'000, kMostDims = 64;

// --- writing ---

const std::string& Text(const std::string& text) {
  if (!IsUtf8(text))
    Throw(ErrorKind::kData, "'{}' cannot be written to an ONNX file: it is not UTF-8",
          EscapedBytes(text));
  return text;
}

void Write(Tensor&& tensor, ::onnx::TensorProto* proto) {
  proto->set_data_type(static_cast<int>(tensor.type));
  for (const int64_t dim : tensor.dims) proto->add_dims(dim);
  proto->set_raw_data(std::move(tensor.bytes));
}

struct AttributeWriter {
  ::onnx::AttributeProto* proto;
  void operator()(int64_t value) const {
    proto->set_type(::onnx::AttributeProto::INT);
    proto->set_i(value);
  }
  void operator()(float value) const {
    proto->set_type(::onnx::AttributeProto::FLOAT);
    proto->set_f(value);
  }
  void operator()(const std::string& value) const {
    proto->set_type(::onnx::AttributeProto::STRING);
    proto->set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto->set_type(::onnx::AttributeProto::INTS);
    for (const int64_t value : values) proto->add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    proto->set_type(::onnx::AttributeProto::FLOATS);
    for (const float value : values) proto->add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    proto->set_type(::onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto->add_strings(value);
  }
  void operator()(const Tensor& value) const {
    proto->set_type(::onnx::AttributeProto::TENSOR);
    Write(Tensor(value), proto->mutable_t());
  }
  void operator()(const std::shared_ptr<const ModelGraph>&) const {
    Throw(ErrorKind::kBug, "an attribute that is a graph cannot be written");
  }
  void operator()(const OpaqueAttribute& value) const {
    Throw(ErrorKind::kBug, "an attribute of kind {} cannot be written", value.kind);
  }
};

void Write(const ModelNode& node, ::onnx::NodeProto* proto) {
  proto->set_op_type(node.op);
  proto->set_name(Text(node.name));
  if (!node.domain.empty()) proto->set_domain(node.domain);
  for (const std::string& input : node.inputs) proto->add_input(Text(input));
  for (const std::string& output : node.outputs) proto->add_output(Text(output));
  for (const auto& [name, value] : node.attributes) {
    ::onnx::AttributeProto* attribute = proto->add_attribute();
    attribute->set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

void Write(const ModelValue& value, ::onnx::ValueInfoProto* proto) {
  proto->set_name(Text(value.name));
  auto* type = proto->mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int>(value.type));
  if (!value.has_shape) return;
  auto* shape = type->mutable_shape();
  for (size_t i = 0; i < value.dims.size(); ++i) {
    auto* dim = shape->add_dim();
    if (value.dims[i] != ModelValue::kDynamic) {
      dim->set_dim_value(value.dims[i]);
    } else if (i < value.dim_names.size() && !value.dim_names[i].empty()) {
      dim->set_dim_param(Text(value.dim_names[i]));
    }
  }
}

// --- reading ---

class Reader {
 public:
  Reader(const std::string& name, const std::string& folder) : name_(name), external_(folder) {}

  Model Read(::onnx::ModelProto* proto) {
    Model model;
    if (!proto->has_graph()) Fail("it has no graph");
    for (const auto& set : proto->opset_import()) {
      if (set.domain().empty() || set.domain() == "ai.onnx") model.opset = set.version();
    }
    if (model.opset == 0) Fail("it does not say which version of the operators it uses");
    model.producer = proto->producer_name();
    for (const auto& item : proto->metadata_props()) model.metadata[item.key()] = item.value();
    ReadGraph(proto->mutable_graph(), &model);
    external_.ReadAll();
    return model;
  }

 private:
  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> text, Args&&... args) const {
    Throw(ErrorKind::kData, "{} is not a model that can be read: {}", name_,
          fmt::format(text, std::forward<Args>(args)...));
  }

  void ReadGraph(::onnx::GraphProto* graph, Model* model) {
    model->graph_name = graph->name();
    ReadParts(graph, &model->nodes, &model->initializers);
    for (const auto& input : graph->input()) {
      if (!model->initializers.contains(input.name())) model->inputs.push_back(ReadValue(input));
    }
    for (const auto& output : graph->output()) model->outputs.push_back(ReadValue(output));
  }

  void ReadParts(::onnx::GraphProto* graph, std::vector<ModelNode>* nodes,
                 std::map<std::string, Tensor>* arrays) {
    num_nodes_ += graph->node_size();
    if (num_nodes_ > kMostNodes)
      Fail("its graph has {} nodes; {} are allowed", num_nodes_, kMostNodes);
    if (graph->sparse_initializer_size() > 0)
      Fail("it has sparse arrays, which mxtrain does not support");
    for (auto& proto : *graph->mutable_initializer()) {
      const std::string name = proto.name();
      const auto [at, is_new] = arrays->try_emplace(name);
      if (!is_new) Fail("two arrays are named '{}'", name);
      ReadTensor(&proto, format("array '{}'", name), &at->second);
    }
    nodes->reserve(static_cast<size_t>(graph->node_size()));
    for (auto& node : *graph->mutable_node()) nodes->push_back(ReadNode(&node));
  }

  // Protobuf has bounded how deep graphs lie in each other.
  std::shared_ptr<const ModelGraph> ReadInner(::onnx::GraphProto* graph) {
    auto inner = std::make_shared<ModelGraph>();
    ReadParts(graph, &inner->nodes, &inner->initializers);
    for (const auto& input : graph->input()) inner->inputs.push_back(input.name());
    for (const auto& output : graph->output()) inner->outputs.push_back(output.name());
    return inner;
  }

  ModelValue ReadValue(const ::onnx::ValueInfoProto& proto) const {
    ModelValue value;
    value.name = proto.name();
    if (!proto.type().has_tensor_type())
      Fail("'{}', an input or output of the graph, is not an array", proto.name());
    const auto& type = proto.type().tensor_type();
    value.type = static_cast<ElementType>(type.elem_type());
    value.has_shape = type.has_shape();
    if (type.shape().dim_size() > kMostDims)
      Fail("'{}' has {} axes", proto.name(), type.shape().dim_size());
    for (const auto& dim : type.shape().dim()) {
      // Some programs write an open length as -1.
      const bool open = !dim.has_dim_value() || dim.dim_value() == ModelValue::kDynamic;
      if (!open && (dim.dim_value() < 0 || dim.dim_value() > TShape::kMaxSize))
        Fail("'{}' has {} elements along an axis", proto.name(), dim.dim_value());
      value.dims.push_back(open ? ModelValue::kDynamic : dim.dim_value());
      value.dim_names.push_back(dim.dim_param());
    }
    return value;
  }

  ModelNode ReadNode(::onnx::NodeProto* proto) {
    ModelNode node{proto->op_type(),
                   proto->name(),
                   proto->domain() == "ai.onnx" ? "" : proto->domain(),
                   {proto->input().begin(), proto->input().end()},
                   {proto->output().begin(), proto->output().end()},
                   {}};
    for (auto& attribute : *proto->mutable_attribute())
      node.attributes[attribute.name()] = ReadAttribute(&attribute, node);
    return node;
  }

  Attribute ReadAttribute(::onnx::AttributeProto* proto, const ModelNode& node) {
    using Proto = ::onnx::AttributeProto;
    switch (proto->type()) {
      case Proto::INT:
        return proto->i();
      case Proto::FLOAT:
        return proto->f();
      case Proto::STRING:
        return proto->s();
      case Proto::INTS:
        return std::vector<int64_t>(proto->ints().begin(), proto->ints().end());
      case Proto::FLOATS:
        return std::vector<float>(proto->floats().begin(), proto->floats().end());
      case Proto::STRINGS:
        return std::vector<std::string>(proto->strings().begin(), proto->strings().end());
      case Proto::TENSOR: {
        Tensor tensor;
        // Node attributes are few and small; only arrays of the graph lie in other files.
        if (proto->t().data_location() == ::onnx::TensorProto::EXTERNAL)
          Fail("{} '{}' has an attribute in another file", node.op, node.name);
        ReadTensor(proto->mutable_t(),
                   format("attribute '{}' of {} '{}'", proto->name(), node.op, node.name), &tensor);
        return tensor;
      }
      case Proto::GRAPH:
        return ReadInner(proto->mutable_g());
      default:
        return OpaqueAttribute{Proto::AttributeType_Name(proto->type())};
    }
  }

  void ReadTensor(::onnx::TensorProto* proto, const std::string& what, Tensor* tensor) {
    tensor->type = static_cast<ElementType>(proto->data_type());
    if (proto->dims_size() > kMostDims) Fail("{} has {} axes", what, proto->dims_size());
    tensor->dims.assign(proto->dims().begin(), proto->dims().end());
    const int64_t element = SizeOf(tensor->type);
    if (element == 0) return;  // an error where its elements are asked for
    int64_t bytes = 0;
    try {
      bytes = tensor->Size() * element;
    } catch (const Error& e) {
      Fail("{}: {}", what, e.what());
    }
    if (proto->data_location() == ::onnx::TensorProto::EXTERNAL) {
      ExternalPlace place;
      for (const auto& entry : proto->external_data()) place.Set(entry.key(), entry.value(), what);
      external_.Add(place, bytes, what, &tensor->bytes);
      return;
    }
    if (proto->has_raw_data()) {
      tensor->bytes = std::move(*proto->mutable_raw_data());
    } else {
      TakeTyped(*proto, tensor);
    }
    if (static_cast<int64_t>(tensor->bytes.size()) != bytes)
      Fail("{} should have {} bytes, but has {}", what, bytes, tensor->bytes.size());
  }

  template <typename To, typename From>
  static void Append(const From& values, std::string* bytes) {
    bytes->reserve(static_cast<size_t>(values.size()) * sizeof(To));
    for (const auto value : values) {
      const auto narrowed = static_cast<To>(value);
      bytes->append(reinterpret_cast<const char*>(&narrowed), sizeof(To));
    }
  }
  // The fields for typed elements. 16-bit floats are their bits.
  static void TakeTyped(const ::onnx::TensorProto& proto, Tensor* tensor) {
    switch (tensor->type) {
      case ElementType::kFloat:
        return Append<float>(proto.float_data(), &tensor->bytes);
      case ElementType::kDouble:
        return Append<double>(proto.double_data(), &tensor->bytes);
      case ElementType::kInt64:
        return Append<int64_t>(proto.int64_data(), &tensor->bytes);
      case ElementType::kUint32:
        return Append<uint32_t>(proto.uint64_data(), &tensor->bytes);
      case ElementType::kUint64:
        return Append<uint64_t>(proto.uint64_data(), &tensor->bytes);
      case ElementType::kInt32:
        return Append<int32_t>(proto.int32_data(), &tensor->bytes);
      default:
        return SizeOf(tensor->type) == 1 ? Append<uint8_t>(proto.int32_data(), &tensor->bytes)
                                         : Append<uint16_t>(proto.int32_data(), &tensor->bytes);
    }
  }

  const std::string& name_;
  ExternalData external_;
  int num_nodes_ = 0;  // of all graphs
};

}  // namespace

bool HasOnnxFiles() {
  return true;
}

std::string WriteModel(Model model) {
  ::onnx::ModelProto proto;
  proto.set_ir_version(kIrVersion);
  proto.set_producer_name(model.producer);
  proto.add_opset_import()->set_version(model.opset);
  for (const auto& [key, value] : model.metadata) {
    auto* item = proto.add_metadata_props();
    item->set_key(key);
    item->set_value(Text(value));
  }
  ::onnx::GraphProto* graph = proto.mutable_graph();
  graph->set_name(Text(model.graph_name));
  for (const ModelNode& node : model.nodes) Write(node, graph->add_node());
  for (const ModelValue& value : model.inputs) Write(value, graph->add_input());
  for (const ModelValue& value : model.outputs) Write(value, graph->add_output());
  for (auto& [name, tensor] : model.initializers) {
    ::onnx::TensorProto* array = graph->add_initializer();
    array->set_name(Text(name));
    Write(std::move(tensor), array);
  }
  if (proto.ByteSizeLong() > kMostFileBytes) {
    Throw(ErrorKind::kUsage,
          "an ONNX file holds less than 2 GiB, and this model takes {} bytes; --float16 halves it",
          proto.ByteSizeLong());
  }
  return proto.SerializeAsString();
}

Model ParseModel(std::string_view bytes, const std::string& name, const std::string& folder) {
  if (bytes.size() > kMostFileBytes)
    Throw(ErrorKind::kData, "{} has {} bytes; an ONNX file holds less than 2 GiB", name,
          bytes.size());
  CheckParsedBytes(bytes, name);
  ::onnx::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto.has_graph()) {
    Throw(ErrorKind::kData, "{} is not an ONNX model, or is truncated", name);
  }
  return Reader(name, folder).Read(&proto);
}

Model ReadModel(const std::string& path) {
  const std::string bytes = ReadFile(path, kMostFileBytes);
  return ParseModel(bytes, path, std::filesystem::absolute(path).parent_path().string());
}

}  // namespace mxtrain::onnx
