// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/import.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/fold.h"
#include "mxtrain/onnx/internal/function_names.h"
#include "mxtrain/onnx/internal/import_node.h"
#include "mxtrain/onnx/internal/node_order.h"

namespace mxtrain::onnx {
namespace {

const std::map<std::string_view, ImportFn>& ImportConverters() {
  static const std::map<std::string_view, ImportFn> converters = [] {
    std::map<std::string_view, ImportFn> all;
    for (const auto& family :
         {LayerImports(), NormImports(), ElementwiseImports(), ShapeImports(), ArrayImports(),
          IndexImports(), SamplingImports(), ResizeImports(), AttentionImports(), LossImports(),
          ProductImports(), QuantizedImports(), SequenceImports(), PoolImports(), FunctionImports(),
          RecurrentImports()}) {
      for (const ImportEntry& entry : family) all.emplace(entry.op, entry.convert);
    }
    return all;
  }();
  return converters;
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
    const std::vector<const ModelNode*> nodes = InOrder(model_.nodes);
    std::set<std::string> wanted;
    for (const ModelValue& output : model_.outputs) {
      wanted.insert(output.name);
      ++state_.readers[output.name];
    }
    const std::vector<const ModelNode*> needed = Needed(nodes, &wanted);
    CheckOperators(needed);
    CountReaders(needed);
    FindBatch();
    const std::vector<std::string> names = InputNames(model_);
    for (size_t i = 0; i < names.size(); ++i) AddInput(model_.inputs[i], names[i]);
    for (const auto& [name, tensor] : model_.initializers) AddArray(name, tensor);
    for (const ModelNode* node : nodes) Check(*node);
    for (const ModelNode* node : needed) Convert(*node);
    AddOutputs();
    DropUnread(&state_.net);
    CheckArrays(state_);
    AddNotes();
    state_.net.metadata = model_.metadata;
    return std::move(state_.net);
  }

 private:
  static void CheckOperators(const std::vector<const ModelNode*>& nodes) {
    std::map<std::string, std::vector<std::string>> unknown;  // nodes by operator
    for (const ModelNode* node : nodes) {
      const bool known = node->domain.empty() && (ImportConverters().contains(node->op) ||
                                                  CanFold(node->op) || node->op == "If");
      if (known) continue;
      const std::string op = node->domain.empty() ? node->op : node->domain + "." + node->op;
      unknown[op].push_back(!node->name.empty()     ? node->name
                            : node->outputs.empty() ? "?"
                                                    : node->outputs[0]);
    }
    if (unknown.empty()) return;
    std::vector<std::string> texts;
    for (const auto& [op, names] : unknown)
      texts.push_back(format("{} ({})", op, FirstOf(names, 3)));
    Throw(ErrorKind::kConfig, "the model uses operators that have no equivalent here: {}",
          join(texts, ", "));
  }

  void CountReaders(const std::vector<const ModelNode*>& nodes) {
    for (const ModelNode* node : nodes)
      ForEachRead(*node, [this](const std::string& name) { ++state_.readers[name]; });
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
      if (input.dims.empty() || !state_.readers.contains(input.name)) continue;
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

  // Of one that nothing reads, only the name counts.
  void AddInput(const ModelValue& value, const std::string& wanted) {
    if (!state_.readers.contains(value.name)) {
      computed_.insert(value.name);
      return;
    }
    const bool any = options_.any_batch, number = value.has_shape && value.dims.empty();
    if (!value.has_shape || (number && any))
      Throw(ErrorKind::kConfig, "the input '{}' has no batch axis; expected [N, ...]", value.name);
    if (!any && !number && BatchOf(value) == 0)
      Throw(ErrorKind::kConfig,
            "the input '{}' leaves the length of its first axis open; import it for any batch",
            value.name);
    bool channels_first = false;
    const TShape shape = number ? TShape::OfRank(0) : ShapeOfExample(value, &channels_first);
    if (std::ranges::find(shape, 0) != shape.end())
      Throw(ErrorKind::kConfig, "the input '{}' has no elements: one example is {}", value.name,
            shape.ToString());
    const std::string name = state_.NewName(wanted);
    state_.net.inputs.push_back({name, shape, TypeOf(value), value.name});
    Shapes in_batch;
    for (size_t i = 0; i < 2; ++i) {
      std::vector<int64_t> dims(shape.begin(), shape.end());
      if (!number) dims.insert(dims.begin(), any ? state_.batches[i] : BatchOf(value));
      in_batch[i] = TShape(std::span<const int64_t>(dims));
    }
    state_.shapes[name] = in_batch;
    ImportValue& made = Define(value.name, "the graph");
    made.reference = name;
    made.shape = in_batch;
    made.type = value.type;
    if (!channels_first) return;
    const ModelNode move{"Transpose", value.name + " channels last", "", {}, {value.name}, {}};
    ImportNode(move, &state_).Out("transpose", {name}, {{"axes", "(0, 2, 3, 1)"}});
    state_.values[value.name].type = value.type;
  }

  // `channels_first`: the given shape is [C, H, W] where the file has [H, W, C].
  TShape ShapeOfExample(const ModelValue& value, bool* channels_first) const {
    const std::span<const int64_t> dims(value.dims.begin() + 1, value.dims.end());
    if (const auto given = options_.shapes.find(value.name); given != options_.shapes.end()) {
      const TShape& shape = given->second;
      const auto fits = [&](std::array<int, 3> order) {
        for (size_t i = 0; i < 3; ++i) {
          if (dims[i] != ModelValue::kDynamic && dims[i] != shape[order[i]]) return false;
        }
        return true;
      };
      *channels_first =
          dims.size() == 3 && shape.ndim() == 3 && !fits({0, 1, 2}) && fits({1, 2, 0});
      return shape;
    }
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
    if (node.op == "If") return ConvertIf(node, step);
    if (!FoldNode(node, &step)) ConvertBy(node, step);
    for (const std::string& output : node.outputs) {
      const bool is_read = !output.empty() && state_.readers.contains(output);
      if (is_read && !state_.values.contains(output))
        step.Refuse("its output '{}' has no equivalent", output);
    }
  }

  // By the converter of its operator.
  void ConvertBy(const ModelNode& node, ImportNode& step) {
    const auto converter = ImportConverters().find(node.op);
    if (converter == ImportConverters().end())
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
    static const std::set<std::string_view> sums = {
        "Mod",    "BitShift",   "Sum",       "CumSum",          "MatMul",  "Gemm",
        "Einsum", "ReduceProd", "ReduceSum", "ReduceSumSquare", "ReduceL1"};
    const bool counts = FindOnnxBinary(node.op) || sums.contains(node.op);
    if (counts && !types.empty() && IsInteger(types[0]))
      state_.integer_nodes.push_back(step.Describe());
  }

  // The branch that a known condition takes, in place of the node.
  void ConvertIf(const ModelNode& node, const ImportNode& step) {
    if (!step.is_array(0)) step.Refuse("its condition depends on the data");
    const std::vector<double> condition = step.array(0).Doubles();
    const auto found = node.attributes.find(
        !condition.empty() && condition[0] != 0 ? "then_branch" : "else_branch");
    const auto* branch = found == node.attributes.end()
                             ? nullptr
                             : std::get_if<std::shared_ptr<const ModelGraph>>(&found->second);
    if (!branch || condition.size() != 1 || (*branch)->outputs.size() != node.outputs.size())
      Throw(ErrorKind::kData, "{} has no branch with its outputs for the condition",
            step.Describe());
    const ModelGraph& graph = Renamed(**branch, step);
    std::set<std::string> wanted;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (!state_.readers.contains(node.outputs[i])) continue;
      wanted.insert(graph.outputs[i]);
      state_.readers[graph.outputs[i]] += 2;  // nothing is joined across the branch
    }
    const std::vector<const ModelNode*> nodes = InOrder(graph.nodes),
                                        needed = Needed(nodes, &wanted);
    CheckOperators(needed);
    CountReaders(needed);
    for (const auto& [name, tensor] : graph.initializers) AddArray(name, tensor);
    for (const ModelNode* inner : nodes) Check(*inner);
    for (const ModelNode* inner : needed) Convert(*inner);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (!wanted.contains(graph.outputs[i])) continue;
      const auto value = state_.values.find(graph.outputs[i]);
      if (value == state_.values.end())
        Throw(ErrorKind::kData, "{}: its branch computes no '{}'", step.Describe(),
              graph.outputs[i]);
      ImportValue copy = value->second;
      copy.layer = -1;
      state_.values[node.outputs[i]] = std::move(copy);
    }
  }

  // A branch whose values have names that nothing else has. It lives as long as the import.
  const ModelGraph& Renamed(const ModelGraph& branch, const ImportNode& step) {
    ModelGraph& graph = *branches_.emplace_back(std::make_unique<ModelGraph>(branch));
    if (!graph.inputs.empty()) step.Refuse("its branch has inputs");
    std::map<std::string, std::string> names;
    const auto rename = [&](const std::string& name) {
      if (name.empty() || (!state_.values.contains(name) && !computed_.contains(name))) return;
      std::string fresh = name;
      while (state_.values.contains(fresh) || computed_.contains(fresh))
        fresh = format("{}/{}", step.output(), fresh);
      names[name] = fresh;
    };
    for (const auto& [name, tensor] : branch.initializers) rename(name);
    for (const ModelNode& node : branch.nodes) std::ranges::for_each(node.outputs, rename);
    if (!names.empty()) Rename(names, &graph);
    return graph;
  }

  static void Rename(const std::map<std::string, std::string>& names, ModelGraph* graph) {
    const auto apply = [&names](std::string& name) {
      if (const auto found = names.find(name); found != names.end()) name = found->second;
    };
    std::map<std::string, Tensor> arrays;
    for (auto& [name, tensor] : graph->initializers) {
      std::string fresh = name;
      apply(fresh);
      arrays[fresh] = std::move(tensor);
    }
    graph->initializers = std::move(arrays);
    std::ranges::for_each(graph->outputs, apply);
    for (ModelNode& node : graph->nodes) {
      std::ranges::for_each(node.inputs, apply);
      std::ranges::for_each(node.outputs, apply);
      for (auto& [key, attribute] : node.attributes) {
        auto* inner = std::get_if<std::shared_ptr<const ModelGraph>>(&attribute);
        if (!inner) continue;
        auto copy = std::make_shared<ModelGraph>(**inner);
        Rename(names, copy.get());
        *inner = std::move(copy);
      }
    }
  }

  using Results = std::vector<std::optional<Tensor>>;

  // What is known without data: all inputs are, or only their shapes are asked for.
  bool FoldNode(const ModelNode& node, ImportNode* step) {
    const bool shape_only = node.op == "Shape" || node.op == "Size";
    if (!CanFold(node.op) && (node.inputs.empty() || !ImportConverters().contains(node.op)))
      return false;
    bool same = true;  // for all sizes of the batch
    for (const std::string& name : node.inputs) {
      if (name.empty()) continue;
      const ImportValue& value = state_.values.at(name);
      if (!shape_only && !value.is_constant()) return false;
      same = same && (shape_only ? value.shape[0] == value.shape[1] : value.is_array());
    }
    // An array that is repeated for every example, as a class token is, stays a parameter.
    if (!same && (node.op == "Expand" || node.op == "Tile") && step->is_array(0) &&
        step->in(0).type == ElementType::kFloat)
      return false;
    std::array<Results, 2> results;
    for (size_t batch = 0; batch < (same ? 1 : 2); ++batch) {
      results[batch] = Computed(node, shape_only, batch, *step);
      if (results[batch].empty()) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const size_t last = same ? 0 : 1;
      if (node.outputs[i].empty() || i >= results[0].size() || i >= results[last].size() ||
          !results[0][i] || !results[last][i])
        continue;
      std::array<std::shared_ptr<const Tensor>, 2> known{
          std::make_shared<const Tensor>(std::move(*results[0][i])), nullptr};
      known[1] = same ? known[0] : std::make_shared<const Tensor>(std::move(*results[1][i]));
      const bool equal = known[0]->dims == known[1]->dims && known[0]->bytes == known[1]->bytes;
      if (equal) known[1] = known[0];
      Account(node, known, *step);
      step->OutConstant(std::move(known), static_cast<int>(i));
    }
    // The same array under another name, in another type or transposed.
    if (node.op == "Constant") state_.values[node.outputs[0]].array = node.outputs[0];
    if (node.op == "Identity" || node.op == "Cast" || node.op == "Transpose")
      state_.values[node.outputs[0]].array = state_.values.at(node.inputs[0]).array;
    return true;
  }

  // For one size of the batch. Empty: not here.
  Results Computed(const ModelNode& node, bool shape_only, size_t batch, const ImportNode& step) {
    std::vector<Tensor> shapes;
    shapes.reserve(node.inputs.size());
    Folding folding{node, {}, model_.opset, MostBytes() - state_.computed_bytes};
    for (const std::string& name : node.inputs) {
      const ImportValue* value = name.empty() ? nullptr : &state_.values.at(name);
      if (shape_only && value) {
        const TShape& shape = value->shape[batch];
        shapes.push_back({ElementType::kInt64, {shape.begin(), shape.end()}, ""});
        folding.in.push_back(&shapes.back());
      } else {
        folding.in.push_back(value ? value->constant[batch].get() : nullptr);
      }
    }
    try {
      Results results;
      if (CanFold(node.op)) {
        for (Tensor& result : Fold(folding)) results.emplace_back(std::move(result));
      }
      const auto converter = ImportConverters().find(node.op);
      if (results.empty() && converter != ImportConverters().end())
        results = ComputeByLayers(node, converter->second, state_, folding.in, folding.most_bytes);
      return results;
    } catch (const Error& e) {
      if (std::string_view(e.what()).starts_with(step.Describe())) throw;
      RethrowWithPrefix(std::current_exception(), step.Describe());
    }
  }

  int64_t MostBytes() const { return options_.most_computed_bytes + 4 * state_.file_bytes; }

  // A small file must not compute large arrays, again and again.
  void Account(const ModelNode& node, const std::array<std::shared_ptr<const Tensor>, 2>& results,
               const ImportNode& step) {
    const auto bytes = static_cast<int64_t>(results[0]->bytes.size());
    if (node.op == "Constant") {  // an array of the file
      state_.file_bytes += bytes;
      return;
    }
    state_.computed_bytes += bytes;
    if (results[1] != results[0])
      state_.computed_bytes += static_cast<int64_t>(results[1]->bytes.size());
    if (state_.computed_bytes > MostBytes())
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
      CheckOverBatch(output.name, found->second.shape);
      if (state_.readers.at(output.name) == 1) {
        if (options_.loss) MakeLoss(found->second);
        if (options_.logistic.contains(output.name)) MakeLogistic(found->second);
      }
      state_.net.outputs.push_back(LayerOf(found->second, output.name));
    }
  }

  // A net for any batch gives a row for each example where the file, for one batch, does.
  void CheckOverBatch(const std::string& output, const Shapes& shape) const {
    const auto& batches = state_.batches;
    if (!state_.fixed_batch || shape[0].ndim() == 0 || shape[0][0] != batches[0]) return;
    if (!(shape[0] == shape[1])) return;
    Throw(
        ErrorKind::kConfig,
        "the output '{}' is {} for a batch of {} alone; export the model with a batch of any size",
        output, shape[0].ToString(), batches[0]);
  }

  // An input or variable that is an output goes through a layer.
  std::string LayerOf(const ImportValue& value, const std::string& name) {
    const auto is = [&value](const auto& part) { return part.name == value.reference; };
    if (std::ranges::none_of(state_.net.inputs, is) &&
        std::ranges::none_of(state_.net.variables, is))
      return value.reference;
    const ModelNode copy{"Identity", name, "", {}, {name}, {}};
    return ImportNode(copy, &state_).Add("identity", {value.reference});
  }

  void AddNotes() {
    if (state_.integer_nodes.empty()) return;
    state_.net.notes.push_back(
        format("{} compute{} with integers of the data, which are float32 here: exact up to "
               "16777216, and larger ones are rounded",
               FirstOf(state_.integer_nodes, 3), state_.integer_nodes.size() == 1 ? "s" : ""));
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

  void MakeLogistic(const ImportValue& value) {
    if (value.layer < 0) return;
    ImportedNet::Layer& layer = state_.net.layers[static_cast<size_t>(value.layer)];
    if (layer.op != "Activation" || layer.params != Kwargs{{"act_type", "sigmoid"}}) return;
    layer.op = "LogisticRegressionOutput";
    layer.params.clear();
  }

  const Model& model_;
  const ImportOptions& options_;
  ImportState state_;
  std::set<std::string> computed_;
  std::vector<std::unique_ptr<ModelGraph>> branches_;  // taken, of If
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
