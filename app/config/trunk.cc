// SPDX-License-Identifier: Apache-2.0
#include "app/config/trunk.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

// What a layer is given, {Convolution: {name: stem, ...}}; null for one without keys.
const Value* KeysOf(const Value& layer) {
  const bool has_keys =
      layer.is_map() && layer.members.size() == 1 && layer.members[0].value.is_map();
  return has_keys ? &layer.members[0].value : nullptr;
}

// "" without a name.
std::string NameOfLayer(const Value& layer) {
  const Value* const keys = KeysOf(layer);
  const Value* const name = keys ? keys->Get("name") : nullptr;
  return name && name->is_scalar() ? name->text : "";
}

// What the keys of a layer name as its inputs.
std::vector<Value> InputsOf(const Value& layer) {
  const Value* const keys = KeysOf(layer);
  const Value* const inputs = keys ? keys->Get("inputs") : nullptr;
  if (!inputs) return {};
  return inputs->is_list() ? inputs->list : std::vector<Value>{*inputs};
}

// "stride4" of "${stride4}"; "" of another text.
std::string VariableIn(const std::string& text) {
  return text.starts_with("${") && text.ends_with("}") ? text.substr(2, text.size() - 3) : "";
}

class Trunk {
 public:
  Trunk(const TrunkEnd& end, const Value& parts, const Value& layers, Diagnostics* diagnostics)
      : end_(end), vars_{end.vars, parts.Get("vars")}, layers_(layers), diagnostics_(*diagnostics) {
    for (const Value& layer : layers.list) {
      if (const std::string name = NameOfLayer(layer); !name.empty()) names_.push_back(name);
    }
  }

  // How many of its layers stay; 0 after an error.
  size_t CountFor(const Value& following) const {
    std::vector<std::pair<std::string, Place>> taken;
    for (const Value& layer : following.list) TakenBy(layer, &taken);
    // A layer may have the name of one that is cut off.
    for (const Value& layer : following.list)
      std::erase_if(taken, [&](const auto& name) { return name.first == NameOfLayer(layer); });
    if (diagnostics_.num_errors() > 0) return 0;
    return end_.until ? CountUntil(taken) : CountTaken(following.place, taken);
  }

 private:
  // The number of layers up to the one of this name; 0 if there is none.
  size_t Position(const std::string& name) const {
    for (size_t i = 0; i < layers_.list.size() && !name.empty(); ++i) {
      if (NameOfLayer(layers_.list[i]) == name) return i + 1;
    }
    return 0;
  }

  // A variable that is written beside the net, or that of the net; null if there is none.
  const Value* Variable(const std::string& name) const {
    for (const Value* map : vars_) {
      if (const Value* value = map && map->is_map() ? map->Get(name) : nullptr) return value;
    }
    return nullptr;
  }

  size_t CountUntil(const std::vector<std::pair<std::string, Place>>& taken) const {
    const Value& until = end_.until->value;
    if (!until.is_scalar() || until.text.empty()) {
      diagnostics_.Error(until.place,
                         format("net.until: expected a name, got {}", until.Describe()), Ends());
      return 0;
    }
    const Value* const stage = Variable(until.text);
    const size_t count = std::max(Position(stage ? stage->text : ""), Position(until.text));
    if (count == 0) {
      std::vector<std::string> known = Stages();
      known.insert(known.end(), names_.begin(), names_.end());
      diagnostics_.Error(until.place,
                         format("net.until: {} has no stage or layer '{}'{}", end_.use.text,
                                until.text, DidYouMean(until.text, known)),
                         Ends());
      return 0;
    }
    for (const auto& [name, place] : taken) {
      if (Position(name) <= count) continue;
      diagnostics_.Error(place,
                         format("'{}' is a layer of {} behind '{}', where net.until ends it", name,
                                end_.use.text, until.text),
                         format("net.until: {}, or a layer before it", name));
      return 0;
    }
    return count;
  }

  size_t CountTaken(const Place& place,
                    const std::vector<std::pair<std::string, Place>>& taken) const {
    size_t count = 0;
    for (const auto& [name, where] : taken) count = std::max(count, Position(name));
    if (count > 0) return count;
    diagnostics_.Error(
        place,
        format("net.layers next to net.use: none takes a layer of {} by its name", end_.use.text),
        format("say where it ends, as net.until: features, or give the first one inputs: NAME; {}",
               Ends()));
    return 0;
  }

  std::vector<std::string> Stages() const {
    std::vector<std::string> stages;
    for (const Value* map : vars_) {
      if (!map || !map->is_map()) continue;
      for (const Member& variable : map->members) {
        if (Position(variable.value.text) > 0 &&
            std::ranges::find(stages, variable.key) == stages.end())
          stages.push_back(variable.key);
      }
    }
    return stages;
  }
  std::string Ends() const {
    const std::vector<std::string> stages = Stages();
    return format("{}its layers are {}",
                  stages.empty() ? "" : format("its stages are {}; ", join(stages, ", ")),
                  join(names_, ", "));
  }

  // The names in `inputs` of a layer, those of variables ("${stride4}") by their value.
  void TakenBy(const Value& layer, std::vector<std::pair<std::string, Place>>* names) const {
    for (const Value& input : InputsOf(layer)) {
      std::string text = input.text;
      if (const std::string variable = VariableIn(text); !variable.empty()) {
        const Value* const value = Variable(variable);
        if (!value)
          diagnostics_.Error(
              end_.use.place,
              format("{} does not say which of its layers is {}", end_.use.text, variable),
              format("set vars.{}: LAYER; `mxtrain plan` shows the layers", variable));
        text = value ? value->text : "";
      }
      names->emplace_back(text.substr(0, text.find('.')), input.place);
    }
  }

  const TrunkEnd& end_;
  const std::vector<const Value*> vars_;  // written ones first; null for none
  const Value& layers_;
  std::vector<std::string> names_;
  Diagnostics& diagnostics_;
};

Value* LayersOf(Value* parts) {
  Member* const net = parts->Find("net");
  Member* const layers = net && net->value.is_map() ? net->value.Find("layers") : nullptr;
  return layers && layers->value.is_list() ? &layers->value : nullptr;
}

}  // namespace

void ContinueTrunk(const TrunkEnd& end, Value layers, Value* parts, Diagnostics* diagnostics) {
  Value* const trunk = LayersOf(parts);
  if (!trunk) return;
  const size_t count = Trunk(end, *parts, *trunk, diagnostics).CountFor(layers);
  if (count == 0) return;
  trunk->list.resize(count);
  if (Member* train = parts->Find("train"); end.until && train && train->value.is_map())
    std::erase_if(train->value.members, [](const Member& m) { return m.key == "initializer"; });
  for (Value& layer : layers.list) trunk->list.push_back(std::move(layer));
}

void ReadTrunkInput(const Value& use, const Member& inputs, Value* parts,
                    Diagnostics* diagnostics) {
  Value* const trunk = LayersOf(parts);
  if (!trunk || !inputs.value.is_map()) return;
  if (!inputs.value.Get(kTrunkInput)) {
    diagnostics->Error(inputs.place,
                       format("net.inputs: {} reads an input '{}', which is not among them",
                              use.text, kTrunkInput),
                       format("name its images so: {{{}: [3, 224, 224], ...}}", kTrunkInput));
    return;
  }
  for (Value& layer : trunk->list) {
    if (layer.is_scalar())
      layer = Value::Map({{layer.text, layer.place, Value::Map({}, layer.place)}}, layer.place);
    if (layer.is_map() && layer.members.size() == 1 && layer.members[0].value.is_null())
      layer.members[0].value = Value::Map({}, layer.place);
    if (!KeysOf(layer) || layer.members[0].key == "Variable") continue;
    std::vector<Member>& keys = layer.members[0].value.members;
    if (!layer.members[0].value.Find("inputs"))
      keys.push_back({"inputs", layer.place, Value::Scalar(kTrunkInput, layer.place, true)});
    return;
  }
}

int64_t LargestStride(const Value& layers) {
  constexpr std::string_view kStride = "stride";
  int64_t largest = 0;
  for (const Value& layer : layers.list) {
    for (const Value& input : InputsOf(layer)) {
      const std::string variable = VariableIn(input.text);
      if (!variable.starts_with(kStride)) continue;
      int64_t stride = 0;
      const char* const begin = variable.data() + kStride.size();
      const char* const end = variable.data() + variable.size();
      if (std::from_chars(begin, end, stride).ptr == end) largest = std::max(largest, stride);
    }
  }
  return largest;
}

}  // namespace mxtrain::config
