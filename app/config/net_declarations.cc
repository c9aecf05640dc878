// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_declarations.h"

#include <utility>

#include "app/config/net_keys.h"
#include "app/config/schema_kinds.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

bool ReadShape(const Value& value, Expansion* expansion, TShape* shape) {
  std::vector<int64_t> dims;
  const std::vector<Value> items = value.is_list() ? value.list : std::vector<Value>{value};
  for (const Value& item : items) {
    const std::optional<int64_t> dim = item.AsInteger();
    if (!dim || *dim < 1) {
      expansion->Error(item.place ? item.place : value.place,
                       format("a size must be a positive integer, got {}", item.Describe()),
                       "a shape is a list of sizes without the batch: [3, 224, 224]");
      return false;
    }
    dims.push_back(*dim);
  }
  if (static_cast<int>(dims.size()) > TShape::kMaxDims - 1) {
    expansion->Error(value.place, format("a shape has at most {} sizes, this one has {}",
                                         TShape::kMaxDims - 1, dims.size()));
    return false;
  }
  *shape = TShape(std::span<const int64_t>(dims));
  return true;
}

// A shape, or {shape, dtype}.
bool ReadInput(const Value& value, Expansion* expansion, NetInput* input) {
  if (!value.is_map()) return ReadShape(value, expansion, &input->shape);
  const Value* shape = value.Get("shape");
  if (!shape) {
    expansion->Error(value.place, format("the input '{}' needs a shape", input->name),
                     "{shape: [4], dtype: float32}");
    return false;
  }
  for (const Member& m : value.members) {
    if (m.key == "shape" || m.key == "dtype") continue;
    expansion->Error(m.place, format("an input has no key '{}'", m.key), "keys: shape, dtype");
    return false;
  }
  if (const Value* dtype = value.Get("dtype")) {
    try {
      input->dtype = ParseDType(dtype->text);
    } catch (const Error& error) {
      expansion->Error(dtype->place, error.what());
      return false;
    }
  }
  return ReadShape(*shape, expansion, &input->shape);
}

void AddInput(const std::string& name, const Place& place, Value value, Expansion* expansion) {
  std::vector<NetInput>& inputs = expansion->net().inputs;
  NetInput input{name, TShape(), DType::kFloat32};
  const bool good = expansion->ExpandAll(&value, 0) && ReadInput(value, expansion, &input);
  expansion->Declare(
      0, name, place,
      good ? Entry{Entry::Kind::kInput, static_cast<int>(inputs.size()), {}} : BrokenEntry());
  if (good) inputs.push_back(std::move(input));
}

// An initializer as the attribute that Initializer reads: '["normal", {"sigma": 0.01}]'.
bool ReadInit(const Value& value, Expansion* expansion, Attrs* attrs) {
  Named init;
  if (const std::optional<double> number = value.AsNumber()) {
    if (!params::FitsFloat32(*number)) {
      expansion->Error(value.place,
                       format("init: expected a finite number, got {}", value.Describe()));
      return false;
    }
    init = {"constant", {{"value", value.text}}, value.place};
  } else {
    static const std::string kPath = "init";
    if (!Read(value, ReadContext{&expansion->diagnostics(), kPath, nullptr, InitializerKinds()},
              &init))
      return false;
  }
  Json params = Json::object();
  for (const auto& [key, text] : init.params) {
    const Value value_of_key = Value::Scalar(text);
    const std::optional<int64_t> whole = value_of_key.AsInteger();
    const std::optional<double> number = value_of_key.AsNumber();
    params[key] = whole ? Json(*whole) : number ? Json(*number) : Json(text);
  }
  (*attrs)["__init__"] = Json::array({init.name, params}).dump();
  return true;
}

bool ReadVariableKey(const Member& m, Expansion* expansion, std::string* name, Attrs* attrs) {
  if (m.key == "name") return ReadName(m.value, expansion, name);
  if (m.key == "lr_mult" || m.key == "wd_mult") return ReadMultiplier(m, expansion, attrs);
  if (m.key == "shape") {
    TShape shape;
    if (!ReadShape(m.value, expansion, &shape)) return false;
    (*attrs)["__shape__"] = shape.ToTuple();
    return true;
  }
  if (m.key == "init") return ReadInit(m.value, expansion, attrs);
  const std::vector<std::string> known = {"name", "shape", "init", "lr_mult", "wd_mult"};
  const std::string nearest = Nearest(m.key, known);
  expansion->Error(m.place, format("Variable has no key '{}'", m.key),
                   nearest.empty() ? format("keys: {}", join(known, ", "))
                                   : format("did you mean '{}'?", nearest));
  return false;
}

}  // namespace

void ReadInputs(Expansion* expansion) {
  const NetConfig& net = expansion->config().net;
  if (!net.input.is_null() && !net.inputs.is_null()) {
    expansion->Error(net.inputs.place, "net.input and net.inputs exclude each other",
                     "net.input: S means net.inputs: {data: S}");
  } else if (!net.input.is_null()) {
    AddInput("data", net.input.place, net.input, expansion);
  } else if (net.inputs.is_map() && !net.inputs.members.empty()) {
    for (const Member& m : net.inputs.members) AddInput(m.key, m.place, m.value, expansion);
  } else if (!net.inputs.is_null()) {
    expansion->Error(
        net.inputs.place,
        format("net.inputs: expected a map from names to shapes, got {}", net.inputs.Describe()),
        "{left: [1, 28, 28], right: {shape: [4], dtype: float32}}");
  } else if (net.place) {
    expansion->Error(net.place, "the net has no input", "input: [channels, height, width]");
  }
  expansion->net().num_data = static_cast<int>(expansion->net().inputs.size());
  if (net.labels.is_map()) {
    for (const Member& m : net.labels.members) AddInput(m.key, m.place, m.value, expansion);
  } else if (!net.labels.is_null()) {
    expansion->Error(
        net.labels.place,
        format("net.labels: expected a map from names to shapes, got {}", net.labels.Describe()));
  }
}

void ExpandVariable(const Place& place, const Value& params, int scope, Expansion* expansion) {
  WrittenVariable variable;
  variable.place = place;
  variable.notes = expansion->notes();
  std::string name;
  bool good = true;
  for (const Member& member : params.members) {
    Member m = member;
    if (m.key == "when") continue;
    good = expansion->ExpandAll(&m.value, scope) &&
           ReadVariableKey(m, expansion, &name, &variable.attrs) && good;
  }
  if (name.empty() && good) {
    expansion->Error(place, "a Variable needs a name", "- Variable: {name: w, shape: [10, 4]}");
    return;
  }
  if (name.empty()) return;
  variable.name = expansion->ScopeAt(scope).prefix + name;
  std::vector<WrittenVariable>& variables = expansion->net().variables;
  expansion->Declare(
      scope, name, place,
      good ? Entry{Entry::Kind::kVariable, static_cast<int>(variables.size()), {}} : BrokenEntry());
  if (good) variables.push_back(std::move(variable));
}

}  // namespace mxtrain::config
