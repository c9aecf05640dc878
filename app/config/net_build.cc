// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "app/config/net_checks.h"
#include "app/config/net_layers.h"
#include "app/config/net_onnx.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/operator/zeros_if_missing.h"

namespace mxtrain::config {
namespace {

// Limits lookups through nested block outputs: if each level names its output twice, there are
// 2^depth paths.
constexpr int64_t kMaxResolved = 1'000'000;

// A possible source of an input: a variable of the net or a visible output of a layer.
struct Origin {
  Entry::Kind kind = Entry::Kind::kBroken;
  int index = -1, output = 0;
};

class Builder {
 public:
  Builder(WrittenNet net, const OperatorRegistry& registry, Diagnostics* diagnostics)
      : net_(std::move(net)),
        registry_(registry),
        diagnostics_(*diagnostics),
        state_(net_.layers.size()),
        symbols_(net_.layers.size()),
        properties_(net_.layers.size()),
        ranks_(net_.layers.size(), 2),
        used_(net_.layers.size()) {}

  Net Run(const Config& config) {
    for (const NetInput& input : net_.inputs)
      inputs_.push_back(Symbol::Variable(input.name, {{"__dtype__", NameOf(input.dtype)}}));
    for (const WrittenVariable& v : net_.variables)
      variables_.push_back(Symbol::Variable(v.name, v.attrs));
    for (size_t i = 0; i < net_.layers.size(); ++i) Visit(static_cast<int>(i));
    Net built;
    built.inputs.assign(net_.inputs.begin(), net_.inputs.begin() + net_.num_data);
    built.labels.assign(net_.inputs.begin() + net_.num_data, net_.inputs.end());
    for (const std::string& label : label_names_)
      built.labels.push_back({label, TShape(), DType::kFloat32});
    for (const Layer& layer : net_.layers) built.origins[layer.name] = {layer.place, layer.notes};
    for (const WrittenVariable& v : net_.variables) built.origins[v.name] = {v.place, v.notes};
    const std::vector<Symbol> heads = Heads(config);
    if (diagnostics_.num_errors() > 0) return built;
    if (heads.empty()) {
      diagnostics_.Error(config.net.layers.place ? config.net.layers.place : config.net.place,
                         "the net has no layers", "add at least one layer");
      return built;
    }
    WarnOfUnused();
    built.texts = std::move(texts_);
    built.symbol = heads.size() == 1 ? heads[0] : Symbol::Group(heads);
    return built;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone, kBroken };
  struct MadeParameter {
    int layer = -1, index = -1;  // index into variables_; -1 until another layer reads it
  };
  Layer& At(int i) { return net_.layers[static_cast<size_t>(i)]; }
  State& StateOf(int i) { return state_[static_cast<size_t>(i)]; }

  // --- what names mean ---
  // Resolves a reference; reports an error if it cannot be resolved, unless `quiet`.
  std::vector<Origin> Resolve(const Reference& reference, bool quiet) {
    if (++num_resolved_ > kMaxResolved) {
      diagnostics_.Error(reference.place,
                         format("'{}' passes through too many outputs of blocks", reference.text),
                         "name each output of a block once", reference.notes);
      diagnostics_.ThrowIfErrors();
    }
    const auto [entry, output] = Split(reference);
    if (!entry) {
      if (std::optional<Origin> parameter = ParameterOfLayer(reference)) return {*parameter};
      if (!quiet) ReportDangling(reference);
      return {Origin{}};
    }
    return ResolveEntry(*entry, output, reference, quiet);
  }
  // NAME, or NAME.OUTPUT.
  std::pair<const Entry*, std::string> Split(const Reference& reference) const {
    if (const Entry* entry = FindEntry(net_, reference.scope, reference.text)) return {entry, ""};
    const size_t dot = reference.text.rfind('.');
    if (dot == std::string::npos) return {nullptr, ""};
    return {FindEntry(net_, reference.scope, reference.text.substr(0, dot)),
            reference.text.substr(dot + 1)};
  }

  std::vector<Origin> ResolveEntry(const Entry& entry, const std::string& output,
                                   const Reference& by, bool quiet) {
    if (++depth_ > 200) {
      --depth_;
      if (!quiet)
        diagnostics_.Error(by.place, format("'{}' depends on itself", by.text), "", by.notes);
      return {Origin{}};
    }
    std::vector<Origin> found = {Origin{}};
    switch (entry.kind) {
      case Entry::Kind::kInput:
      case Entry::Kind::kVariable:
        found = {Origin{entry.kind, entry.index, 0}};
        break;
      case Entry::Kind::kLayer:
        found = OutputsOfLayer(entry.index, output, by, quiet);
        break;
      case Entry::Kind::kOutside: {
        Reference outside = entry.outside[0];
        if (!output.empty()) outside.text += "." + output;
        found = Resolve(outside, quiet);
        break;
      }
      case Entry::Kind::kBlock:
        found = OutputsOfBlock(entry.index, output, by, quiet);
        break;
      default:
        break;
    }
    --depth_;
    return found;
  }

  std::vector<Origin> OutputsOfBlock(int scope, const std::string& output, const Reference& by,
                                     bool quiet) {
    const Scope& inside = net_.scopes[static_cast<size_t>(scope)];
    std::vector<Origin> found;
    for (const Reference& reference : inside.outputs) {
      if (!output.empty() && reference.text != output) continue;
      for (const Origin& origin : Resolve(reference, quiet)) found.push_back(origin);
    }
    if (!inside.outputs.empty() && !found.empty()) return found;
    if (inside.outputs.empty()) return ResolveEntry(inside.last, output, by, quiet);
    std::vector<std::string> names;
    for (const Reference& reference : inside.outputs) names.push_back(reference.text);
    if (!quiet)
      diagnostics_.Error(by.place, format("there is no output '{}'", by.text),
                         format("its outputs are {}", join(names, ", ")), by.notes);
    return {Origin{}};
  }

  std::vector<Origin> OutputsOfLayer(int layer, const std::string& output, const Reference& by,
                                     bool quiet) {
    if (quiet) return {Origin{Entry::Kind::kLayer, layer, 0}};  // only for the order
    Visit(layer);
    if (StateOf(layer) != State::kDone) return {Origin{}};
    const OperatorProperty& op = *properties_[static_cast<size_t>(layer)];
    const std::vector<std::string> names = op.ListOutputs();
    std::vector<Origin> found;
    for (int i = 0; i < op.NumVisibleOutputs(); ++i) {
      if (output.empty() || output == names[static_cast<size_t>(i)] || output == std::to_string(i))
        found.push_back({Entry::Kind::kLayer, layer, i});
    }
    if (!found.empty()) return found;
    diagnostics_.Error(
        by.place, format("{} '{}' has no output '{}'", At(layer).written, At(layer).name, output),
        format("its outputs are {}",
               join(std::span(names).first(static_cast<size_t>(op.NumVisibleOutputs())), ", ")),
        by.notes);
    return {Origin{}};
  }

  // "fc1_weight": a parameter that a layer created.
  std::optional<Origin> ParameterOfLayer(const Reference& reference) {
    for (size_t cut = reference.text.rfind('_'); cut != std::string::npos && cut > 0;
         cut = reference.text.rfind('_', cut - 1)) {
      const Entry* entry =
          FindEntry(net_, reference.scope, std::string_view(reference.text).substr(0, cut));
      if (!entry || entry->kind != Entry::Kind::kLayer) continue;
      Visit(entry->index);
      if (StateOf(entry->index) != State::kDone) return Origin{};
      const auto made = made_.find(At(entry->index).name + reference.text.substr(cut));
      if (made != made_.end())
        return Origin{Entry::Kind::kVariable, IndexOf(&made->second, made->first), 0};
    }
    return std::nullopt;
  }
  // Done on demand: few parameters are referenced by other layers, and finding one requires a walk
  // over the net below its layer.
  int IndexOf(MadeParameter* made, const std::string& name) {
    if (made->index < 0) {
      made->index = static_cast<int>(variables_.size());
      // A group owns a temporary layout of the net.
      const Symbol layer[] = {symbols_[static_cast<size_t>(made->layer)]};
      variables_.push_back(Symbol::Group(layer).GetInternals()[name]);
    }
    return made->index;
  }

  void ReportDangling(const Reference& reference) {
    const std::vector<std::string> known = KnownNames(net_, reference.scope);
    const std::string nearest = Nearest(reference.text, known);
    diagnostics_.Error(reference.place, format("there is no layer or input '{}'", reference.text),
                       !nearest.empty() ? format("did you mean '{}'?", nearest)
                                        : format("set a layer's name with `name`, declare a "
                                                 "parameter with - Variable: {{name: {}}}",
                                                 reference.text),
                       reference.notes);
  }

  Symbol SymbolOf(const Origin& origin) {
    const size_t i = static_cast<size_t>(origin.index);
    if (origin.kind == Entry::Kind::kInput) return inputs_[i];
    if (origin.kind == Entry::Kind::kVariable) return variables_[i];
    used_[i] = true;
    return symbols_[i][origin.output];
  }
  int RankOf(const Origin& origin) const {
    const size_t i = static_cast<size_t>(origin.index);
    if (origin.kind == Entry::Kind::kLayer) return ranks_[i];
    const int rank = origin.kind == Entry::Kind::kInput ? net_.inputs[i].shape.ndim() - 1 : 2;
    return rank >= 1 && rank <= 3 ? rank : 2;
  }

  // --- layers, each after what it reads ---
  void Visit(int i) {
    if (StateOf(i) == State::kDone || StateOf(i) == State::kBroken) return;
    if (StateOf(i) == State::kOpen) return ReportCycle(i);
    StateOf(i) = State::kOpen;
    path_.push_back(i);
    const bool good = Build(i);
    path_.pop_back();
    StateOf(i) = good ? State::kDone : State::kBroken;
  }

  void ReportCycle(int i) {
    std::string chain;
    const auto start = std::find(path_.begin(), path_.end(), i);
    for (auto at = start; at != path_.end(); ++at) chain += At(*at).name + " -> ";
    diagnostics_.Error(At(i).place, format("cycle: {}{}", chain, At(i).name),
                       "nets cannot have loops: change the input of one of them", At(i).notes);
    for (auto at = start; at != path_.end(); ++at)
      state_[static_cast<size_t>(*at)] = State::kBroken;
  }

  bool Build(int i) {
    const std::vector<FieldInfo> fields = registry_.CreateUninitialized(At(i).op)->DescribeParams();
    std::vector<Symbol> inputs;
    bool good = ReadInputs(i, &inputs);
    const std::string num_args_key = registry_.CreateUninitialized(At(i).op)->NumArgsKey();
    std::optional<Kwargs> kwargs =
        ReadParams(At(i), fields, num_args_key, ranks_[static_cast<size_t>(i)], &diagnostics_);
    if (kwargs && !num_args_key.empty() &&
        std::none_of(kwargs->begin(), kwargs->end(),
                     [&](const auto& k) { return k.first == num_args_key; })) {
      kwargs->emplace_back(num_args_key, std::to_string(std::max<size_t>(1, inputs.size())));
    }
    const std::shared_ptr<const OperatorProperty> op =
        kwargs ? MakeProperty(At(i), *kwargs, registry_, &diagnostics_) : nullptr;
    if (!op) {
      ReportStrangers(At(i), fields, &diagnostics_);
      return false;
    }
    NoteTexts(At(i), fields);
    properties_[static_cast<size_t>(i)] = op;
    std::map<std::string, Symbol> named;
    good = ReadNamed(i, *op, fields, &named) && good;
    return good && CheckInputs(At(i), *op, inputs.size(), named, &diagnostics_) &&
           CheckLosses(At(i), *op, inputs) && Compose(i, *op, *kwargs, inputs, &named);
  }

  void NoteTexts(const Layer& layer, const std::vector<FieldInfo>& fields) {
    for (const FieldInfo& field : fields) {
      if (field.type != "string") continue;
      for (const Member& m : layer.params) {
        if (m.key == field.name && m.value.AsNumber()) texts_.push_back(m.value.place);
      }
    }
  }

  bool ReadInputs(int i, std::vector<Symbol>* inputs) {
    bool good = true, first = true;
    // Resolving may visit other layers, so hold no references into the layer.
    for (size_t k = 0; k < At(i).inputs.size(); ++k) {
      const LayerInput input = At(i).inputs[k];
      if (!input.named && input.entry.kind == Entry::Kind::kNone) {
        if (At(i).named.empty()) {
          diagnostics_.Error(At(i).place, "this is the first layer, and the net has several inputs",
                             format("choose inputs: inputs: {}", InputNames()), At(i).notes);
          good = false;
        }
        continue;
      }
      const std::vector<Origin> origins =
          input.named ? Resolve(*input.named, false)
                      : ResolveEntry(input.entry, "",
                                     {At(i).written, At(i).place, At(i).scope, At(i).notes}, false);
      for (const Origin& origin : origins) {
        if (origin.kind == Entry::Kind::kBroken || StateOf(i) == State::kBroken) {
          good = false;
          continue;
        }
        if (std::exchange(first, false)) ranks_[static_cast<size_t>(i)] = RankOf(origin);
        inputs->push_back(SymbolOf(origin));
      }
    }
    return good;
  }
  std::string InputNames() const {
    std::vector<std::string> names;
    for (const NetInput& input : net_.inputs) names.push_back(input.name);
    return format("{}", join(names, " | "));
  }
  bool ReadNamed(int i, const OperatorProperty& op, const std::vector<FieldInfo>& fields,
                 std::map<std::string, Symbol>* named) {
    const std::vector<std::string> arguments = op.ListArguments();
    bool good = true;
    for (size_t k = 0; k < At(i).named.size(); ++k) {
      const auto [key, reference] = At(i).named[k];
      const auto found = std::find(arguments.begin(), arguments.end(), key);
      if (found == arguments.end()) {
        ReportUnknownParam(At(i), key, At(i).named_keys[k], fields, arguments, &diagnostics_);
        good = false;
        continue;
      }
      if (!At(i).named_texts[k]) {
        diagnostics_.Error(
            reference.place,
            format("{}: expected the name of a layer or a Variable, got '{}'", key, reference.text),
            "", At(i).notes);
        good = false;
        continue;
      }
      const int argument = static_cast<int>(found - arguments.begin());
      if (IsLabel(op, argument, key) && !Split(reference).first) {
        named->emplace(key, Label(reference.text));
        continue;
      }
      if (const Entry* entry = Split(reference).first;
          entry && entry->kind == Entry::Kind::kLayer && entry->index == i) {
        diagnostics_.Error(
            reference.place,
            format("the {} '{}' has the same name as its layer", key, reference.text),
            "names must be unique: rename one of them", At(i).notes);
        good = false;
        continue;
      }
      const std::vector<Origin> origins = Resolve(reference, false);
      if (origins.size() != 1)
        diagnostics_.Error(
            reference.place,
            format("'{}' has {} outputs, but '{}' takes one", reference.text, origins.size(), key),
            "write NAME.OUTPUT", At(i).notes);
      if (origins.size() != 1 || origins[0].kind == Entry::Kind::kBroken ||
          StateOf(i) == State::kBroken) {
        good = false;
        continue;
      }
      named->emplace(key, SymbolOf(origins[0]));
    }
    return good;
  }
  // A column of the data that a loss reads as its label. Equal names share a label.
  Symbol Label(const std::string& name) {
    const auto known = labels_.find(name);
    if (known != labels_.end()) return known->second;
    label_names_.push_back(name);
    return labels_.emplace(name, Symbol::Variable(name)).first->second;
  }

  // A loss after a loss: Keras has a separate softmax layer, here SoftmaxOutput includes it.
  bool CheckLosses(const Layer& layer, const OperatorProperty& op,
                   const std::vector<Symbol>& inputs) {
    if (inputs.empty() || !IsLoss(op)) return true;
    const std::string before = inputs[0].ListOutputs().at(0);
    for (size_t k = 0; k < net_.layers.size(); ++k) {
      const Layer& other = net_.layers[k];
      if (state_[k] != State::kDone || !IsLoss(*properties_[k]) ||
          symbols_[k].ListOutputs().at(0) != before)
        continue;
      diagnostics_.Error(
          layer.place,
          format("{} follows {} '{}', which is a loss too", layer.written, other.written,
                 other.name),
          format("remove one of them: {} computes its own activation", layer.written), layer.notes);
      return false;
    }
    return true;
  }

  bool Compose(int i, const OperatorProperty& op, const Kwargs& kwargs,
               const std::vector<Symbol>& inputs, std::map<std::string, Symbol>* named) {
    const Layer& layer = At(i);
    const std::vector<std::string> arguments = op.ListArguments();
    try {
      symbols_[static_cast<size_t>(i)] =
          Symbol::Create(registry_, layer.op, layer.name, kwargs, inputs, *named, layer.attrs,
                         diagnostics_.sources().Where(layer.place));
    } catch (const Error& error) {
      diagnostics_.Error(layer.attrs.empty() ? layer.place : layer.attrs_place, error.what(), "",
                         layer.notes);
      return false;
    }
    WarnOfOverlap(layer, kwargs, &diagnostics_);
    if (!inputs.empty()) WarnOfTwoSoftmaxes(layer, inputs[0], &diagnostics_);
    for (size_t k = inputs.size(); k < arguments.size(); ++k) {
      if (named->contains(arguments[k]) || IsZeroIfMissing(op, static_cast<int>(k))) continue;
      const std::string name = layer.name + "_" + arguments[k];
      if (IsLabel(op, static_cast<int>(k), arguments[k])) {
        label_names_.push_back(name);
      } else {
        made_[name] = {i, -1};
      }
    }
    return true;
  }

  // --- heads ---
  std::vector<Symbol> Heads(const Config& config) {
    std::vector<Symbol> heads;
    if (!net_.outputs.empty() || !config.net.outputs.is_null()) {
      for (const Reference& reference : net_.outputs) {
        for (const Origin& origin : Resolve(reference, false)) {
          if (origin.kind != Entry::Kind::kBroken) heads.push_back(SymbolOf(origin));
        }
      }
      return heads;
    }
    // Outputs that nothing reads and that take no head gradient; if there are none, the output of
    // the last layer.
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      if (state_[i] != State::kDone || used_[i] || properties_[i]->NeedsHeadGradient()) continue;
      heads.push_back(symbols_[i]);
      used_[i] = true;
    }
    if (!heads.empty()) return heads;
    const Entry last = net_.scopes[0].last;
    if (last.kind == Entry::Kind::kNone || last.kind == Entry::Kind::kBroken ||
        last.kind == Entry::Kind::kInput)
      return heads;
    for (const Origin& origin : ResolveEntry(last, "", {}, false)) {
      if (origin.kind != Entry::Kind::kBroken) heads.push_back(SymbolOf(origin));
    }
    return heads;
  }

  void WarnOfUnused() {
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      if (used_[i]) continue;
      const Layer& layer = net_.layers[i];
      diagnostics_.Warning(
          layer.place, format("nothing reads the layer '{}', and it is not an output", layer.name),
          "add it to net.outputs, or remove it", layer.notes);
    }
  }

  WrittenNet net_;
  const OperatorRegistry& registry_;
  Diagnostics& diagnostics_;
  std::vector<Symbol> inputs_;
  std::vector<Symbol> variables_;  // declared ones, then parameters that other layers read
  std::map<std::string, MadeParameter> made_;  // by name: "fc1_weight"
  std::map<std::string, Symbol> labels_;
  std::vector<std::string> label_names_;
  std::vector<State> state_;
  std::vector<Symbol> symbols_;
  std::vector<std::shared_ptr<const OperatorProperty>> properties_;
  std::vector<int> ranks_;
  std::vector<bool> used_;
  std::vector<Place> texts_;
  std::vector<int> path_;
  int depth_ = 0;
  int64_t num_resolved_ = 0;
};

}  // namespace

Net BuildNet(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins,
             Diagnostics* diagnostics) {
  Config whole = config;
  try {
    whole.net = WithOnnx(config.net, registry);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    diagnostics->Error(config.net.place, error.what());
    return {};
  }
  return Builder(ExpandNet(whole, registry, builtins, diagnostics), registry, diagnostics)
      .Run(whole);
}

std::vector<std::string> ParametersOf(const Net& net) {
  std::vector<std::string> names = net.symbol.ListArguments();
  for (const auto* others : {&net.inputs, &net.labels}) {
    for (const NetInput& other : *others) std::erase(names, other.name);
  }
  return names;
}

std::map<std::string, TShape> BatchShapes(const Net& net, int64_t batch) {
  std::map<std::string, TShape> shapes;
  for (const std::vector<NetInput>* group : {&net.inputs, &net.labels}) {
    for (const NetInput& input : *group) {
      if (!input.shape.has_rank()) continue;
      std::vector<int64_t> dims = {batch};
      dims.insert(dims.end(), input.shape.begin(), input.shape.end());
      shapes[input.name] = TShape(std::span<const int64_t>(dims));
    }
  }
  return shapes;
}

std::map<std::string, TShape> PlannedShapes(const Net& net, int64_t batch) {
  std::map<std::string, TShape> shapes = BatchShapes(net, batch);
  const Symbol::Shapes inferred = net.symbol.InferShape(shapes);
  const std::vector<std::string> names = net.symbol.ListArguments();
  for (const NetInput& label : net.labels) {
    const auto at = static_cast<size_t>(std::ranges::find(names, label.name) - names.begin());
    if (at >= names.size() || !inferred.arguments[at].has_rank()) continue;
    TShape shape = inferred.arguments[at];
    for (int i = 0; i < shape.ndim(); ++i) {
      if (shape[i] == TShape::kUnknown) shape[i] = kPlannedRows;
    }
    shapes[label.name] = shape;
  }
  return shapes;
}

Diagnostic ToDiagnostic(const Net& net, const Error& error, const Place& fallback) {
  Diagnostic diagnostic{Severity::kError, fallback, error.what(), "", {}};
  const std::string& what = diagnostic.message;
  for (size_t open = what.find('\''); open != std::string::npos;) {
    const size_t close = what.find('\'', open + 1);
    if (close == std::string::npos) break;
    const auto found = net.origins.find(std::string_view(what).substr(open + 1, close - open - 1));
    if (found != net.origins.end()) {
      diagnostic.place = found->second.place;
      diagnostic.notes = found->second.notes;
      break;
    }
    open = what.find('\'', close + 1);
  }
  return diagnostic;
}

}  // namespace mxtrain::config
