// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/import.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

const std::map<std::string_view, ImportFn>& Converters() {
  static const std::map<std::string_view, ImportFn> converters = [] {
    std::map<std::string_view, ImportFn> all;
    for (const auto& family :
         {LayerImports(), NormImports(), ElementwiseImports(), ShapeImports(), ArrayImports(),
          IndexImports(), SamplingImports(), ResizeImports(), AttentionImports(), LossImports(),
          ProductImports(), QuantizedImports(), SequenceImports(), PoolImports(),
          FunctionImports()}) {
      for (const ImportEntry& entry : family) all.emplace(entry.op, entry.convert);
    }
    return all;
  }();
  return converters;
}

// Of what is computed from shapes and constants, besides four times the file's own arrays.
constexpr int64_t kFoldedBytes = int64_t{16} << 20;

// What an output is of in the file, by the types of the inputs.
ElementType TypeOfOutput(const ModelNode& node, size_t output,
                         const std::vector<ElementType>& inputs) {
  static const std::set<std::string_view> counts = {"ArgMax", "ArgMin", "Shape", "Size"};
  static const std::set<std::string_view> truth = {
      "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
      "Xor",   "Not",     "IsNaN",          "IsInf"};
  static const std::map<std::string_view, size_t> typed_by = {
      {"Where", 1}, {"OneHot", 2}, {"CastLike", 1}, {"QuantizeLinear", 2}, {"DequantizeLinear", 1}};
  if (counts.contains(node.op) || (node.op == "TopK" && output == 1)) return ElementType::kInt64;
  if (truth.contains(node.op)) return ElementType::kBool;
  if (node.op == "Cast") {
    const auto to = node.attributes.find("to");
    const auto* type = to == node.attributes.end() ? nullptr : std::get_if<int64_t>(&to->second);
    if (type) return static_cast<ElementType>(*type);
  }
  const auto place = typed_by.find(node.op);
  const size_t by = place == typed_by.end() ? 0 : place->second;
  return by < inputs.size() ? inputs[by] : ElementType::kFloat;
}

class Importer {
 public:
  Importer(const Model& model, const OperatorRegistry& registry, const ImportOptions& options)
      : model_(model), options_(options), state_(model, registry) {}

  ImportedNet Run() {
    if (model_.opset < kLeastOpset || model_.opset > kMostOpset) {
      Throw(ErrorKind::kConfig,
            "the model uses opset {} of ONNX; {} to {} are supported: export it with one of these",
            model_.opset, kLeastOpset, kMostOpset);
    }
    FindRead();
    CheckOperators();
    CountReaders();
    FindBatch();
    const std::vector<std::string> names = InputNames(model_);
    for (size_t i = 0; i < names.size(); ++i) AddInput(model_.inputs[i], names[i]);
    for (const auto& [name, tensor] : model_.initializers) AddArray(name, tensor);
    for (const ModelNode& node : model_.nodes) Check(node);
    for (const ModelNode& node : model_.nodes) {
      if (IsRead(node)) Convert(node);
    }
    AddOutputs();
    state_.net.metadata = model_.metadata;
    return std::move(state_.net);
  }

 private:
  // Of the nodes that are read.
  void CheckOperators() const {
    std::map<std::string, std::vector<std::string>> unknown;  // nodes by operator
    for (const ModelNode& node : model_.nodes) {
      if (!IsRead(node)) continue;
      const bool known =
          node.domain.empty() && (Converters().contains(node.op) || CanFold(node.op));
      if (known) continue;
      const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
      unknown[op].push_back(!node.name.empty()     ? node.name
                            : node.outputs.empty() ? "?"
                                                   : node.outputs[0]);
    }
    if (unknown.empty()) return;
    std::vector<std::string> texts;
    for (const auto& [op, nodes] : unknown)
      texts.push_back(format("{} ({})", op, FirstOf(nodes, 3)));
    Throw(ErrorKind::kConfig, "the model uses operators that have no equivalent here: {}",
          join(texts, ", "));
  }

  // What the outputs depend on; nodes that compute nothing of it are dropped.
  void FindRead() {
    for (const ModelValue& output : model_.outputs) read_.insert(output.name);
    for (auto node = model_.nodes.rbegin(); node != model_.nodes.rend(); ++node) {
      if (IsRead(*node)) read_.insert(node->inputs.begin(), node->inputs.end());
    }
  }

  bool IsRead(const ModelNode& node) const {
    return std::ranges::any_of(node.outputs, [this](const std::string& output) {
      return !output.empty() && read_.contains(output);
    });
  }

  void CountReaders() {
    for (const ModelNode& node : model_.nodes) {
      if (!IsRead(node)) continue;
      for (const std::string& input : node.inputs) ++state_.readers[input];
    }
    for (const ModelValue& output : model_.outputs) ++state_.readers[output.name];
  }

  // 0: any.
  static int64_t BatchOf(const ModelValue& input) {
    return input.dims[0] == ModelValue::kDynamic ? 0 : input.dims[0];
  }

  // A batch of fixed size is taken as an example of any; it is that of all inputs. One beside
  // inputs of any size may be an array that is the same for all examples.
  void FindBatch() {
    if (!options_.any_batch) return;
    const ModelValue* first = nullptr;
    for (const ModelValue& input : model_.inputs) {
      if (input.dims.empty()) continue;
      if (!first) first = &input;
      const int64_t batch = BatchOf(input), other = BatchOf(*first);
      if (batch != other && (batch > 1 || other > 1)) {
        const auto text = [](int64_t size) { return size == 0 ? "any size" : params::Print(size); };
        Throw(ErrorKind::kConfig,
              "the inputs '{}' and '{}' have batches of {} and of {}; expected one batch for all: "
              "export the model with a batch of any size",
              first->name, input.name, text(other), text(batch));
      }
      if (batch == 0) continue;
      state_.batches = {batch, 2 * batch};
      state_.fixed_batch = true;
    }
  }

  void AddInput(const ModelValue& value, const std::string& wanted) {
    const bool any = options_.any_batch, number = value.has_shape && value.dims.empty();
    if (!value.has_shape || (number && any))
      Throw(ErrorKind::kConfig, "the input '{}' has no batch axis; expected [N, ...]", value.name);
    if (!any && !number && BatchOf(value) == 0)
      Throw(ErrorKind::kConfig,
            "the input '{}' leaves the length of its first axis open; import it for any batch",
            value.name);
    const TShape shape = number ? TShape::OfRank(0) : ShapeOfExample(value);
    if (std::ranges::find(shape, 0) != shape.end())
      Throw(ErrorKind::kConfig, "the input '{}' has no elements: one example is {}", value.name,
            shape.ToString());
    const std::string name = state_.NewName(wanted);
    state_.net.inputs.push_back({name, shape, TypeOf(value), value.name});
    ImportValue& made = Define(value.name, "the graph");
    made.reference = name;
    made.type = value.type;
    for (size_t i = 0; i < 2; ++i) {
      std::vector<int64_t> dims;
      if (!number) dims.push_back(any ? state_.batches[i] : BatchOf(value));
      dims.insert(dims.end(), shape.begin(), shape.end());
      made.shape[i] = TShape(std::span<const int64_t>(dims));
    }
    state_.shapes[name] = made.shape;
  }

  TShape ShapeOfExample(const ModelValue& value) const {
    if (const auto given = options_.shapes.find(value.name); given != options_.shapes.end())
      return given->second;
    const std::span<const int64_t> dims(value.dims.begin() + 1, value.dims.end());
    if (std::ranges::find(dims, ModelValue::kDynamic) != dims.end()) {
      Throw(ErrorKind::kConfig,
            "the input '{}' leaves the lengths of axes after the batch open; give the shape of one "
            "example, in net.inputs or with --size",
            value.name);
    }
    return TShape(dims);
  }

  static DType TypeOf(const ModelValue& value) {
    switch (value.type) {
      case ElementType::kFloat:
      case ElementType::kFloat16:  // computed in float32
      case ElementType::kBfloat16:
      case ElementType::kDouble:
      case ElementType::kBool:  // 0 and 1
        return DType::kFloat32;
      default:
        if (IsInteger(value.type)) return DType::kFloat32;  // indices are numbers here
        Throw(ErrorKind::kConfig, "the input '{}' is of type {}; expected numbers or truth values",
              value.name, NameOf(value.type));
    }
  }

  void AddArray(const std::string& name, const Tensor& tensor) {
    ImportValue& value = Define(name, "the graph");
    state_.file_bytes += static_cast<int64_t>(tensor.bytes.size());
    const TShape shape = ShapeOf(tensor);
    value.shape = {shape, shape};
    // The model outlives the import.
    const std::shared_ptr<const Tensor> alias(std::shared_ptr<void>(), &tensor);
    value.constant = {alias, alias};
    value.array = name;
    value.type = tensor.type;
  }

  ImportValue& Define(const std::string& name, const std::string& by) {
    const auto [at, is_new] = state_.values.try_emplace(name);
    if (!is_new)
      Throw(ErrorKind::kData, "{} gives the value '{}' a second meaning; names must differ", by,
            name);
    return at->second;
  }

  // Of all nodes, dropped or not.
  void Check(const ModelNode& node) {
    const ImportNode step(node, &state_);
    for (const std::string& input : node.inputs) {
      if (input.empty() || state_.values.contains(input) || computed_.contains(input)) continue;
      Throw(ErrorKind::kData,
            "{} reads '{}', which no node before it computes: the file lacks it, or its nodes form "
            "a cycle",
            step.Describe(), input);
    }
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      if (state_.values.contains(output) || !computed_.insert(output).second)
        Throw(ErrorKind::kData, "{} computes '{}', which exists already", step.Describe(), output);
    }
  }

  void Convert(const ModelNode& node) {
    ImportNode step(node, &state_);
    if (!FoldNode(node, &step)) ConvertBy(node, step);
    for (const std::string& output : node.outputs) {
      const bool is_read = !output.empty() && state_.readers.contains(output);
      if (is_read && !state_.values.contains(output))
        step.Refuse("its output '{}' has no equivalent", output);
    }
  }

  // By the converter of its operator.
  void ConvertBy(const ModelNode& node, ImportNode& step) {
    const auto converter = Converters().find(node.op);
    if (converter == Converters().end())
      step.Refuse("it is supported only where its result does not depend on the data");
    try {
      converter->second(step);
    } catch (const Error& e) {
      if (std::string_view(e.what()).starts_with(step.Describe())) throw;
      RethrowWithPrefix(std::current_exception(), step.Describe());
    }
    std::vector<ElementType> types;
    for (const std::string& input : node.inputs)
      types.push_back(input.empty() ? ElementType::kFloat : state_.values.at(input).type);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto value = state_.values.find(node.outputs[i]);
      if (value != state_.values.end()) value->second.type = TypeOfOutput(node, i, types);
    }
  }

  // What is known without data: all inputs are, or only their shapes are asked for.
  bool FoldNode(const ModelNode& node, ImportNode* step) {
    if (!CanFold(node.op)) return false;
    const bool shape_only = node.op == "Shape" || node.op == "Size";
    std::array<std::shared_ptr<const Tensor>, 2> results;
    for (size_t batch = 0; batch < 2; ++batch) {
      std::vector<Tensor> shapes;
      std::vector<const Tensor*> inputs;
      shapes.reserve(node.inputs.size());
      for (const std::string& name : node.inputs) {
        const ImportValue* value = name.empty() ? nullptr : &state_.values.at(name);
        if (shape_only && value) {
          const TShape& shape = value->shape[batch];
          shapes.push_back({ElementType::kInt64, {shape.begin(), shape.end()}, ""});
          inputs.push_back(&shapes.back());
        } else if (value && !value->is_constant()) {
          return false;
        } else {
          inputs.push_back(value ? value->constant[batch].get() : nullptr);
        }
      }
      std::optional<Tensor> result;
      try {
        result = Fold(node, inputs);
      } catch (const Error&) {
        RethrowWithPrefix(std::current_exception(), step->Describe());
      }
      if (!result) return false;
      results[batch] = std::make_shared<const Tensor>(std::move(*result));
      const bool same = batch == 1 && results[0]->dims == results[1]->dims &&
                        results[0]->bytes == results[1]->bytes;
      if (same) results[1] = results[0];
    }
    // A constant is an array of the file.
    if (node.op == "Constant") state_.file_bytes += static_cast<int64_t>(results[0]->bytes.size());
    for (size_t i = 0; i < (results[0] == results[1] ? 1 : 2) && node.op != "Constant"; ++i)
      CountFolded(static_cast<int64_t>(results[i]->bytes.size()), *step);
    // An array that is repeated for every example, as a class token is, stays a parameter.
    if (node.op == "Expand" && results[0] != results[1] && results[0]->type == ElementType::kFloat)
      return false;
    step->OutConstant(std::move(results));
    std::vector<ElementType> types;
    for (const std::string& input : node.inputs)
      types.push_back(input.empty() ? ElementType::kFloat : state_.values.at(input).type);
    if (TypeOfOutput(node, 0, types) == ElementType::kBool)
      state_.values[node.outputs[0]].type = ElementType::kBool;
    // The same array under another name, in another type or transposed.
    if (node.op == "Constant") state_.values[node.outputs[0]].array = node.outputs[0];
    if (node.op == "Identity" || node.op == "Cast" || node.op == "Transpose")
      state_.values[node.outputs[0]].array = state_.values.at(node.inputs[0]).array;
    return true;
  }

  // A small file must not compute large arrays, again and again.
  void CountFolded(int64_t bytes, const ImportNode& step) {
    folded_bytes_ += bytes;
    if (folded_bytes_ > kFoldedBytes + 4 * state_.file_bytes)
      Throw(ErrorKind::kConfig, "{} cannot be imported: the model computes too much from constants",
            step.Describe());
  }

  void AddOutputs() {
    if (model_.outputs.empty()) Throw(ErrorKind::kData, "the model has no outputs");
    for (const ModelValue& output : model_.outputs) {
      const auto found = state_.values.find(output.name);
      if (found == state_.values.end())
        Throw(ErrorKind::kData, "the output '{}' is computed by no node", output.name);
      if (found->second.is_constant())
        Throw(ErrorKind::kConfig, "the output '{}' does not depend on the input", output.name);
      if (found->second.reference.empty())
        Throw(ErrorKind::kConfig, "the output '{}' is a sequence of arrays", output.name);
      if (options_.loss && state_.readers.at(output.name) == 1) MakeLoss(found->second);
      state_.net.outputs.push_back(found->second.reference);
    }
  }

  // Softmax over the classes of [N, classes] as the head of a classifier, which nothing else reads.
  void MakeLoss(const ImportValue& value) {
    if (value.layer < 0) return;
    ImportedNet::Layer& layer = state_.net.layers[static_cast<size_t>(value.layer)];
    if (layer.op != "softmax" || value.shape[0].ndim() != 2) return;
    if (layer.params != Kwargs{{"axis", "1"}}) return;
    layer.op = "SoftmaxOutput";
    layer.params.clear();
  }

  const Model& model_;
  const ImportOptions& options_;
  ImportState state_;
  std::set<std::string> read_, computed_;
  int64_t folded_bytes_ = 0;
};

}  // namespace

std::vector<std::string> InputNames(const Model& model) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  std::map<std::string, int> suffixes;  // the next to try, by wanted name
  for (const ModelValue& input : model.inputs) {
    const std::string plain = AsName(input.name), wanted = plain.empty() ? "data" : plain;
    std::string name = wanted;
    while (!taken.insert(name).second) name = format("{}_{}", wanted, ++suffixes[wanted]);
    names.push_back(name);
  }
  return names;
}

ImportedNet ImportModel(const Model& model, const OperatorRegistry& registry,
                        const ImportOptions& options) {
  return Importer(model, registry, options).Run();
}

namespace {

Attrs AttrsOf(const ImportedNet::Variable& variable) {
  Attrs attrs{{"__shape__", variable.shape.ToTuple()}};
  if (variable.fixed) attrs["__lr_mult__"] = "0";
  return attrs;
}

}  // namespace

Symbol ToSymbol(const ImportedNet& net, const OperatorRegistry& registry) {
  std::map<std::string, Symbol> symbols;
  for (const ImportedNet::Input& input : net.inputs)
    symbols[input.name] =
        Symbol::Variable(input.name, {{"__dtype__", mxtrain::NameOf(input.type)}});
  for (const ImportedNet::Variable& variable : net.variables)
    symbols[variable.name] = Symbol::Variable(variable.name, AttrsOf(variable));
  for (const ImportedNet::Layer& layer : net.layers) {
    std::vector<Symbol> inputs;
    for (const std::string& input : layer.inputs) inputs.push_back(symbols.at(input));
    std::map<std::string, Symbol> named;
    const std::vector<std::string> arguments =
        registry.Create(layer.op, layer.params)->ListArguments();
    for (const auto& [argument, shared] : layer.arguments) {
      // Auxiliary states are variables of the layer alone.
      if (std::ranges::find(arguments, argument) == arguments.end()) continue;
      const std::string name = shared.empty() ? layer.name + "_" + argument : shared;
      named[argument] = symbols.try_emplace(name, Symbol::Variable(name)).first->second;
    }
    const Symbol made = Symbol::Create(registry, layer.op, layer.name, layer.params, inputs, named);
    const std::vector<std::string> outputs = made.ListOutputs();
    symbols[layer.name] = made;
    for (int i = 0; outputs.size() > 1 && i < made.NumOutputs(); ++i)
      symbols[layer.name + "." + outputs[static_cast<size_t>(i)].substr(layer.name.size() + 1)] =
          made[i];
  }
  std::vector<Symbol> heads;
  for (const std::string& output : net.outputs) heads.push_back(symbols.at(output));
  return heads.size() == 1 ? heads[0] : Symbol::Group(heads);
}

std::map<std::string, NDArray> ArraysOf(const ImportedNet& net, Runtime& runtime) {
  std::map<std::string, NDArray> arrays;
  for (const auto& [name, tensor] : net.arrays)
    arrays[name] = NDArray::FromVector(runtime, ShapeOf(tensor), tensor.ToFloats());
  return arrays;
}

}  // namespace mxtrain::onnx
