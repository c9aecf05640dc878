// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_onnx.h"

#include <algorithm>
#include <optional>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/onnx/model_file.h"

namespace mxtrain::config {
namespace {

Value ListOf(const TShape& shape, const Place& place) {
  std::vector<Value> items;
  for (const int64_t dim : shape) items.push_back(Value::Scalar(std::to_string(dim), place));
  return Value::List(std::move(items), place);
}

// A parameter of an operator: "(3, 3)" as a list, "True" as true.
Value ParameterOf(const std::string& text, const Place& place) {
  if (text == "True" || text == "False")
    return Value::Scalar(text == "True" ? "true" : "false", place);
  if (!text.starts_with('(') || !text.ends_with(')')) return Value::Scalar(text, place);
  std::vector<Value> items;
  const std::string_view inside = std::string_view(text).substr(1, text.size() - 2);
  for (size_t begin = 0; begin < inside.size();) {
    const size_t end = std::min(inside.find(',', begin), inside.size());
    const std::string_view item = Trim(inside.substr(begin, end - begin));
    if (!item.empty()) items.push_back(Value::Scalar(std::string(item), place));
    begin = end + 1;
  }
  return Value::List(std::move(items), place);
}

Value NamesOf(const std::vector<std::string>& names, const Place& place) {
  if (names.size() == 1) return Value::Scalar(names[0], place);
  std::vector<Value> items;
  for (const std::string& name : names) items.push_back(Value::Scalar(name, place));
  return Value::List(std::move(items), place);
}

Value LayerOf(const onnx::ImportedNet::Layer& layer, bool follows, const Place& place) {
  std::vector<Member> members{{"name", place, Value::Scalar(layer.name, place)}};
  if (!follows) members.push_back({"inputs", place, NamesOf(layer.inputs, place)});
  for (const auto& [key, value] : layer.params) {
    // The number of inputs follows from the inputs.
    if (key != "num_args") members.push_back({key, place, ParameterOf(value, place)});
  }
  for (const auto& [argument, shared] : layer.arguments) {
    if (!shared.empty()) members.push_back({argument, place, Value::Scalar(shared, place)});
  }
  return Value::Map({{layer.op, place, Value::Map(std::move(members), place)}}, place);
}

// A shape, a length, or {shape, dtype}, as without a file.
TShape GivenShape(const Value& value, const std::string& key) {
  const Value* shape = value.is_map() ? value.Get("shape") : &value;
  std::vector<int64_t> dims;
  const std::vector<Value> items = !shape             ? std::vector<Value>()
                                   : shape->is_list() ? shape->list
                                                      : std::vector<Value>{*shape};
  for (const Value& item : items) {
    const std::optional<int64_t> dim = item.AsInteger();
    if (!dim || *dim < 1)
      Throw(ErrorKind::kConfig, "{}: next to net.onnx, a size must be a positive integer, got {}",
            key, item.Describe());
    dims.push_back(*dim);
  }
  if (dims.empty() || static_cast<int>(dims.size()) >= TShape::kMaxDims)
    Throw(ErrorKind::kConfig, "{}: expected a shape such as [3, 224, 224], got {}", key,
          value.Describe());
  return TShape(std::span<const int64_t>(dims));
}

// The input that a key of net.inputs means: by its name in the file, or else by that in the net,
// which has no dots.
std::optional<size_t> InputOf(const std::string& key, const std::vector<std::string>& in_file,
                              const std::vector<std::string>& in_net) {
  for (const std::vector<std::string>* names : {&in_file, &in_net}) {
    const auto found = std::ranges::find(*names, key);
    if (found != names->end()) return static_cast<size_t>(found - names->begin());
  }
  return std::nullopt;
}

// "output", or with a number behind it.
std::string NewLayerName(const onnx::ImportedNet& net) {
  const auto taken = [&net](const std::string& name) {
    const auto is = [&name](const auto& part) { return part.name == name; };
    return std::ranges::any_of(net.layers, is) || std::ranges::any_of(net.inputs, is) ||
           std::ranges::any_of(net.variables, is);
  };
  std::string name = "output";
  for (int i = 1; taken(name); ++i) name = format("output_{}", i);
  return name;
}

}  // namespace

onnx::ImportedNet ImportOnnx(const std::string& file, const OperatorRegistry& registry,
                             const std::map<std::string, TShape>& shapes) {
  const onnx::Model model = onnx::ReadModel(file);
  std::vector<std::string> names, in_net = onnx::InputNames(model);
  for (const onnx::ModelValue& input : model.inputs) names.push_back(input.name);
  onnx::ImportOptions options;
  std::set<std::string> given;
  for (const auto& [name, shape] : shapes) {
    const bool only = name.empty() && names.size() == 1;
    if (name.empty() && !only) {
      Throw(ErrorKind::kConfig, "{} has {} inputs, {}; give the shape of each in net.inputs", file,
            names.size(), join(names, ", "));
    }
    const std::optional<size_t> input = only ? 0 : InputOf(name, names, in_net);
    if (!input) {
      Throw(ErrorKind::kConfig, "{} has no input '{}'; its inputs are {}", file, name,
            join(names, ", "));
    }
    if (!only && !given.insert(names[*input]).second)
      Throw(ErrorKind::kConfig, "net.inputs describes the input '{}' of {} twice", names[*input],
            file);
    options.shapes[names[*input]] = shape;
  }
  try {
    return onnx::ImportModel(model, registry, options);
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), file);
  }
}

NetConfig WrittenNetOf(const onnx::ImportedNet& imported, const Place& place) {
  NetConfig net;
  net.place = place;
  if (imported.inputs.size() == 1 && imported.inputs[0].name == "data") {
    net.input = ListOf(imported.inputs[0].shape, place);
  } else {
    std::vector<Member> inputs;
    for (const auto& input : imported.inputs)
      inputs.push_back({input.name, place, ListOf(input.shape, place)});
    net.inputs = Value::Map(std::move(inputs), place);
  }
  std::vector<Value> layers;
  for (const auto& variable : imported.variables) {
    const Value normal = Value::Map({{"name", place, Value::Scalar("normal", place)},
                                     {"sigma", place, Value::Scalar("0.02", place)}},
                                    place);
    std::vector<Member> members{{"name", place, Value::Scalar(variable.name, place)},
                                {"shape", place, ListOf(variable.shape, place)},
                                {"init", place, normal}};
    if (variable.fixed) members.push_back({"lr_mult", place, Value::Scalar("0", place)});
    layers.push_back(
        Value::Map({{"Variable", place, Value::Map(std::move(members), place)}}, place));
  }
  std::string before = imported.inputs.size() == 1 ? imported.inputs[0].name : "";
  for (const auto& layer : imported.layers) {
    const bool follows = layer.inputs.size() == 1 && layer.inputs[0] == before;
    layers.push_back(LayerOf(layer, follows, place));
    before = layer.name;
  }
  // Layers that are appended follow the output, and a net without `outputs` ends with its last
  // layer.
  if (imported.outputs.size() == 1 && imported.outputs[0] != before) {
    const onnx::ImportedNet::Layer last{
        "identity", NewLayerName(imported), {}, imported.outputs, {}};
    layers.push_back(LayerOf(last, false, place));
  }
  net.layers = Value::List(std::move(layers), place);
  if (imported.outputs.size() > 1) net.outputs = NamesOf(imported.outputs, place);
  return net;
}

onnx::ImportedNet ImportOnnx(const NetConfig& net, const OperatorRegistry& registry) {
  std::map<std::string, TShape> shapes;
  if (!net.input.is_null()) shapes[""] = GivenShape(net.input, "net.input");
  for (const Member& input : net.inputs.members)
    shapes[input.key] = GivenShape(input.value, "net.inputs." + input.key);
  return ImportOnnx(net.onnx, registry, shapes);
}

NetConfig WithOnnx(const NetConfig& net, const OperatorRegistry& registry) {
  if (net.onnx.empty()) return net;
  const onnx::ImportedNet imported = ImportOnnx(net, registry);
  NetConfig whole = WrittenNetOf(imported, net.place);
  whole.labels = net.labels;
  // As written, with their dtype; both keys at once are an error there.
  if (!net.input.is_null() && !net.inputs.is_null()) {
    whole.input = net.input;
    whole.inputs = net.inputs;
  } else {
    std::vector<Value*> inputs;
    if (!whole.input.is_null()) inputs = {&whole.input};
    for (Member& input : whole.inputs.members) inputs.push_back(&input.value);
    if (!net.input.is_null() && !inputs.empty()) *inputs[0] = net.input;
    std::vector<std::string> in_file, in_net;
    for (const onnx::ImportedNet::Input& input : imported.inputs) {
      in_file.push_back(input.in_file);
      in_net.push_back(input.name);
    }
    for (const Member& input : net.inputs.members) {
      // Nothing for one that no output depends on.
      if (const auto at = InputOf(input.key, in_file, in_net)) *inputs[*at] = input.value;
    }
  }
  if (net.layers.is_list()) {
    whole.layers.list.insert(whole.layers.list.end(), net.layers.list.begin(),
                             net.layers.list.end());
  } else if (!net.layers.is_null()) {
    whole.layers = net.layers;  // an error there
  }
  if (!net.outputs.is_null()) whole.outputs = net.outputs;
  return whole;
}

}  // namespace mxtrain::config
