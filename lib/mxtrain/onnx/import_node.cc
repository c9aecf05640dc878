// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/import_node.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/onnx/internal/fold.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// Names that a configuration would read as numbers are not names.
bool IsName(const std::string& name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
}

// Of the arrays of a net, besides eight times those of its file.
constexpr int64_t kMostNetBytes = int64_t{16} << 20;

}  // namespace

std::string AsName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

TShape ShapeOf(const Tensor& tensor) {
  if (tensor.dims.size() > static_cast<size_t>(TShape::kMaxDims))
    Throw(ErrorKind::kData, "an array has {} axes; {} are supported", tensor.dims.size(),
          TShape::kMaxDims);
  return TShape(std::span<const int64_t>(tensor.dims));
}

bool IsInteger(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kUint16:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return true;
    default:
      return false;
  }
}

ElementType TypeOfOutput(const ModelNode& node, size_t output,
                         const std::vector<ElementType>& inputs) {
  static const std::set<std::string_view> counts = {"ArgMax", "ArgMin", "Shape", "Size", "NonZero"};
  static const std::set<std::string_view> truth = {
      "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
      "Xor",   "Not",     "IsNaN",          "IsInf"};
  static const std::map<std::string_view, size_t> typed_by = {
      {"Where", 1}, {"OneHot", 2}, {"CastLike", 1}, {"QuantizeLinear", 2}, {"DequantizeLinear", 1}};
  if (counts.contains(node.op) || (output == 1 && (node.op == "TopK" || node.op == "MaxPool")))
    return ElementType::kInt64;
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

std::string ImportState::NewName(const std::string& wanted,
                                 const std::vector<std::string>& endings) {
  int& next = suffixes[wanted];
  for (;;) {
    const std::string name = next == 0 ? wanted : format("{}_{}", wanted, next);
    ++next;
    const bool taken =
        names.contains(name) || std::ranges::any_of(endings, [&](const std::string& ending) {
          return names.contains(format("{}_{}", name, ending));
        });
    if (taken) continue;
    names.insert(name);
    for (const std::string& ending : endings) names.insert(format("{}_{}", name, ending));
    return name;
  }
}

void ImportState::AddArray(const std::string& name, Tensor tensor) {
  net_bytes += static_cast<int64_t>(tensor.bytes.size());
  if (net_bytes > kMostNetBytes + 8 * file_bytes + 2 * computed_bytes)
    Throw(ErrorKind::kConfig,
          "the model uses its arrays for too many layers that do not share them");
  const auto [at, is_new] = net.arrays.try_emplace(name, std::move(tensor));
  if (!is_new) Throw(ErrorKind::kBug, "two imported arrays are called '{}'", name);
}

ImportNode::ImportNode(const ModelNode& node, ImportState* state) : node_(node), state_(*state) {
  name_ = AsName(node.name);
  if (!IsName(name_)) name_ = AsName(node.outputs.empty() ? "" : node.outputs[0]);
  if (!IsName(name_)) name_ = mxtrain::Lower(node.op) + (name_.empty() ? "" : "_") + name_;
}

void ImportNode::NameAfter(const std::string& array) {
  for (const std::string_view ending :
       {".weight", "_weight", ".gamma", "_gamma", ".bias", "_bias", ".beta", "_beta"}) {
    if (!array.ends_with(ending)) continue;
    const std::string name =
        AsName(std::string_view(array).substr(0, array.size() - ending.size()));
    if (IsName(name) && !state_.names.contains(name)) name_ = name;
  }
}

std::string ImportNode::Describe() const {
  return format("{} '{}'", node_.op,
                !node_.name.empty()     ? node_.name
                : node_.outputs.empty() ? ""
                                        : node_.outputs[0]);
}

void ImportNode::ThrowRefusal(const std::string& reason) const {
  Throw(ErrorKind::kConfig, "{} cannot be imported: {}", Describe(), reason);
}

void ImportNode::ThrowFixed(const std::string& what) const {
  Refuse("{} for a batch of {} alone; export the model with a batch of any size", what,
         state_.batches[0]);
}

// --- what the file says ---

const Attribute* ImportNode::Find(const std::string& attribute) const {
  const auto found = node_.attributes.find(attribute);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

namespace {

template <typename T>
T AttributeOr(const Attribute* attribute, const T& otherwise, const ImportNode& node,
              const std::string& name, const char* expected) {
  if (!attribute) return otherwise;
  if (const T* value = std::get_if<T>(attribute)) return *value;
  Throw(ErrorKind::kData, "{}: its attribute '{}' is not {}", node.Describe(), name, expected);
}

}  // namespace

int64_t ImportNode::Int(const std::string& attribute, int64_t otherwise) const {
  return AttributeOr(Find(attribute), otherwise, *this, attribute, "an integer");
}
float ImportNode::Float(const std::string& attribute, float otherwise) const {
  return AttributeOr(Find(attribute), otherwise, *this, attribute, "a number");
}
std::string ImportNode::Word(const std::string& attribute, const std::string& otherwise) const {
  return AttributeOr(Find(attribute), otherwise, *this, attribute, "a text");
}
std::vector<int64_t> ImportNode::Ints(const std::string& attribute,
                                      const std::vector<int64_t>& otherwise) const {
  return AttributeOr(Find(attribute), otherwise, *this, attribute, "a list of integers");
}

std::vector<float> ImportNode::Numbers(const std::string& attribute) const {
  return AttributeOr(Find(attribute), std::vector<float>(), *this, attribute, "a list of numbers");
}

std::vector<std::string> ImportNode::Words(const std::string& attribute) const {
  return AttributeOr(Find(attribute), std::vector<std::string>(), *this, attribute,
                     "a list of texts");
}

bool ImportNode::has(int input) const {
  return input < num_inputs() && !node_.inputs[static_cast<size_t>(input)].empty();
}

const ImportValue& ImportNode::in(int i) const {
  if (!has(i)) Throw(ErrorKind::kData, "{} lacks its input {}", Describe(), i);
  return state_.values.at(node_.inputs[static_cast<size_t>(i)]);
}

const Tensor& ImportNode::array(int i) const {
  if (!in(i).is_array())
    Refuse("its input '{}' must be an array of the file, but is computed",
           node_.inputs[static_cast<size_t>(i)]);
  return *in(i).constant[0];
}

std::optional<std::vector<int64_t>> ImportNode::IntsOfInputOr(int i,
                                                              const std::string& attribute) const {
  if (has(i)) return ints(i);
  if (has(attribute)) return Ints(attribute);
  return std::nullopt;
}

std::optional<float> ImportNode::NumberOfInputOr(int i, const std::string& attribute) const {
  if (has(attribute)) return Float(attribute, 0);
  if (!has(i)) return std::nullopt;
  RequireExact(*this, i);
  const std::vector<float> numbers = array(i).ToFloats();
  if (numbers.size() != 1)
    Throw(ErrorKind::kData, "{}: its input {} has {} elements instead of one", Describe(), i,
          numbers.size());
  return numbers[0];
}

int ImportNode::Axis(int64_t axis, int ndim) const {
  if (axis < -ndim || axis >= ndim)
    Throw(ErrorKind::kData, "{}: axis {} is out of range for {} axes", Describe(), axis, ndim);
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

bool ImportNode::OnlyReader(int i) const {
  return state_.readers.at(node_.inputs[static_cast<size_t>(i)]) == 1;
}

// --- what the net gets ---

const Shapes& ImportNode::ShapesOf(const std::string& reference) const {
  return state_.shapes.at(reference);
}

std::string ImportNode::ref(int i, int ndim) {
  const ImportValue& value = in(i);
  if (!value.elements.empty() || (!value.is_constant() && value.reference.empty()))
    Refuse("its input '{}' is a sequence of arrays", node_.inputs[static_cast<size_t>(i)]);
  if (!value.is_constant()) return value.reference;
  if (value.constant[0]->Size() == 0)
    Refuse("its input '{}' has no elements", node_.inputs[static_cast<size_t>(i)]);
  if (!value.is_array()) return OverBatch(i, ndim);
  Tensor tensor = array(i);
  while (static_cast<int>(tensor.dims.size()) < std::max(ndim, 1))
    tensor.dims.insert(tensor.dims.begin(), 1);
  return Variable(node_.inputs[static_cast<size_t>(i)], tensor);
}

std::string ImportNode::LikeBatch(const std::string& reference, int axis) {
  return Add("broadcast_like", {reference, state_.net.inputs[0].name},
             {{"lhs_axes", TShape{axis}.ToTuple()}, {"rhs_axes", "(0,)"}});
}

namespace {

// The first `length` positions of an axis.
Tensor FirstOf(const Tensor& tensor, size_t axis, int64_t length) {
  const auto middle = tensor.dims.begin() + static_cast<int64_t>(axis);
  const int64_t outer = Count({tensor.dims.begin(), middle}),
                inner = Count({middle + 1, tensor.dims.end()}) * SizeOf(tensor.type),
                row = inner * tensor.dims[axis];
  Tensor first{tensor.type, tensor.dims, ""};
  first.dims[axis] = length;
  for (int64_t i = 0; i < outer; ++i)
    first.bytes.append(tensor.bytes, static_cast<size_t>(i * row),
                       static_cast<size_t>(length * inner));
  return first;
}

// Whether an axis of `tensor` is that of `part`, again and again.
bool Repeats(const Tensor& tensor, size_t axis, const Tensor& part) {
  const int64_t times = tensor.dims[axis] / part.dims[axis];
  const auto outer = static_cast<size_t>(
      Count({part.dims.begin(), part.dims.begin() + static_cast<int64_t>(axis)}));
  const size_t row = part.bytes.size() / outer;
  if (tensor.bytes.size() != part.bytes.size() * static_cast<size_t>(times)) return false;
  const std::string_view all = tensor.bytes, once = part.bytes;
  for (size_t i = 0; i < outer; ++i) {
    for (int64_t k = 0; k < times; ++k) {
      const size_t at = (i * static_cast<size_t>(times) + static_cast<size_t>(k)) * row;
      if (all.substr(at, row) != once.substr(i * row, row)) return false;
    }
  }
  return true;
}

}  // namespace

std::string ImportNode::OverBatch(int i, int ndim) {
  const std::string& name = node_.inputs[static_cast<size_t>(i)];
  const Tensor &small = *in(i).constant[0], &large = *in(i).constant[1];
  const auto fail = [&] {
    Refuse("its input '{}' must be an array of the file, but depends on the size of the batch",
           name);
  };
  size_t axis = small.dims.size();
  for (size_t k = 0; k < small.dims.size() && small.dims.size() == large.dims.size(); ++k) {
    if (small.dims[k] == large.dims[k]) continue;
    if (axis != small.dims.size()) fail();
    axis = k;
  }
  const std::array<int64_t, 2>& batches = state_.batches;
  if (axis == small.dims.size() || small.dims[axis] % batches[0] != 0) fail();
  const int64_t length = small.dims[axis] / batches[0];
  if (large.dims[axis] != length * batches[1]) fail();
  Tensor part = FirstOf(small, axis, length);
  if (!Repeats(small, axis, part) || !Repeats(large, axis, part)) fail();
  Shapes whole = in(i).shape;
  while (static_cast<int>(part.dims.size()) < ndim) {
    part.dims.insert(part.dims.begin(), 1);
    ++axis;
  }
  if (length > 1) part.dims.insert(part.dims.begin() + static_cast<int64_t>(axis), 1);
  const std::string all = LikeBatch(Variable(name + " of one", part), static_cast<int>(axis));
  for (TShape& shape : whole) {
    std::vector<int64_t> dims(static_cast<size_t>(std::max(0, ndim - shape.ndim())), 1);
    dims.insert(dims.end(), shape.begin(), shape.end());
    shape = TShape(std::span<const int64_t>(dims));
  }
  return Reshape(all, whole);
}

std::string ImportNode::ForEveryExample(int i, int axis) {
  const Tensor& rows = array(i);
  const Tensor one = FirstOf(rows, static_cast<size_t>(axis), 1);
  if (!Repeats(rows, static_cast<size_t>(axis), one))
    RefuseFixed("its input '{}' holds", node_.inputs[static_cast<size_t>(i)]);
  const std::string& name = node_.inputs[static_cast<size_t>(i)];
  const bool whole = one.dims == rows.dims;
  return LikeBatch(Variable(whole ? name : name + " of one", one), axis);
}

namespace {

// As additive masks have.
bool HasInfinities(const Tensor& tensor) {
  const std::vector<float> numbers = tensor.ToFloats();
  return std::ranges::any_of(numbers, [](float number) { return std::isinf(number); });
}

}  // namespace

std::string ImportNode::Variable(const std::string& file_name, const Tensor& tensor) {
  const std::string key = format("{}/{}", file_name, tensor.dims.size());
  if (const auto made = state_.made.find(key); made != state_.made.end()) return made->second;
  std::string wanted = AsName(file_name);
  if (!IsName(wanted)) wanted = "array_" + wanted;
  const std::string name = state_.NewName(wanted);
  const TShape shape = ShapeOf(tensor);
  const bool fixed =
      IsInteger(tensor.type) || tensor.type == ElementType::kBool || HasInfinities(tensor);
  if (const std::optional<int64_t> number = InexactInteger(tensor))
    Refuse("its input '{}' has the integer {}, which float32 does not hold", file_name, *number);
  state_.net.variables.push_back({name, shape, fixed});
  state_.AddArray(name, Tensor::Floats(tensor.dims, tensor.ToFloats()));
  state_.shapes[name] = {shape, shape};
  state_.made[key] = name;
  return name;
}

std::string ImportNode::OwnArray(const std::string& what, const Tensor& tensor) {
  return NewArray(what, tensor, true);
}

std::string ImportNode::OwnParameter(const std::string& what, const Tensor& tensor) {
  return NewArray(what, tensor, false);
}

std::string ImportNode::NewArray(const std::string& what, const Tensor& tensor, bool fixed) {
  const std::string name = state_.NewName(format("{}_{}", name_, what));
  const TShape shape = ShapeOf(tensor);
  state_.net.variables.push_back({name, shape, fixed});
  state_.AddArray(name, Tensor::Floats(tensor.dims, tensor.ToFloats()));
  state_.shapes[name] = {shape, shape};
  return name;
}

ImportNode::Argument ImportNode::ArgumentOf(int i, const std::string& name) const {
  return ArgumentOf(i, name, array(i), "");
}

ImportNode::Argument ImportNode::ArgumentOf(int i, const std::string& name, Tensor changed,
                                            const std::string& how) const {
  RequireExact(*this, i);
  const std::string& of = node_.inputs[static_cast<size_t>(i)];
  return {name, std::move(changed), of + "/" + how};
}

namespace {

// Of a layer's arguments where only those of its inputs are known.
std::vector<TShape> UsualShapes(const OperatorProperty& property,
                                const std::vector<Shapes>& known) {
  std::vector<TShape> in, out(static_cast<size_t>(property.NumOutputs())),
      aux(property.ListAuxiliaryStates().size());
  for (const Shapes& shape : known) in.push_back(shape[0]);
  try {
    property.InferShape(&in, &out, &aux);
  } catch (const Error&) {
    // Inferred again with all that is known, where an error counts.
  }
  return in;
}

}  // namespace

void ImportNode::CheckTaken(const std::string& argument, const TShape& shape,
                            const std::vector<std::string>& names, const std::vector<TShape>& in,
                            const std::vector<std::string>& states,
                            const std::vector<TShape>& aux) const {
  for (const auto& [list, shapes] : {std::pair(&names, &in), std::pair(&states, &aux)}) {
    const auto at = std::ranges::find(*list, argument);
    if (at == list->end()) continue;
    const TShape& taken = (*shapes)[static_cast<size_t>(at - list->begin())];
    if (taken == shape) return;
    Refuse("its array '{}' has the shape {}; the layer takes {}", argument, shape.ToString(),
           taken.ToString());
  }
  Throw(ErrorKind::kBug, "{}: the layer has no argument '{}'", Describe(), argument);
}

std::vector<std::string> ImportNode::AddLayer(const std::string& op, const std::string& name,
                                              const std::vector<std::string>& inputs,
                                              const Kwargs& params,
                                              std::vector<Argument> arguments) {
  const std::shared_ptr<const OperatorProperty> property = state_.registry.Create(op, params);
  const std::vector<std::string> names = property->ListArguments(),
                                 states = property->ListAuxiliaryStates();
  // The names of its own arrays are taken with it; AddBias may add a bias.
  std::vector<std::string> owned(states);
  for (size_t i = inputs.size(); i < names.size(); ++i) owned.push_back(names[i]);
  if (op == "FullyConnected") owned.push_back("bias");
  ImportedNet::Layer layer{op, state_.NewName(name, owned), params, inputs, {}};
  std::vector<Shapes> known(names.size());
  for (size_t i = 0; i < inputs.size(); ++i) known.at(i) = ShapesOf(inputs[i]);
  const std::vector<TShape> usual = UsualShapes(*property, known);
  std::map<std::string, TShape> given;  // arrays, by argument
  for (Argument& argument : arguments) {
    const TShape shape = ShapeOf(argument.tensor);
    given[argument.name] = shape;
    const auto at = std::ranges::find(names, argument.name);
    const auto index = static_cast<size_t>(at - names.begin());
    if (at != names.end()) known[index] = {shape, shape};
    const std::string own = layer.name + "_" + argument.name;
    const bool shareable = at != names.end() && !argument.key.empty();
    const auto made = shareable ? state_.made.find(argument.key) : state_.made.end();
    if (made != state_.made.end()) {
      layer.arguments[argument.name] = made->second;
      continue;
    }
    // A net that is built of the layers would give the argument its usual shape.
    const bool is_usual = at == names.end() || usual[index] == shape;
    if (!is_usual) state_.net.variables.push_back({own, shape});
    layer.arguments[argument.name] = is_usual ? "" : own;
    state_.AddArray(own, Tensor::Floats(argument.tensor.dims, argument.tensor.ToFloats()));
    if (shareable) state_.made[argument.key] = own;
  }
  std::vector<std::vector<TShape>> out(2);
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<TShape> in, aux(states.size());
    for (const Shapes& shape : known) in.push_back(shape[batch]);
    out[batch].resize(static_cast<size_t>(property->NumOutputs()));
    try {
      property->InferShape(&in, &out[batch], &aux);
    } catch (const Error& e) {
      if (batch == 1 && state_.fixed_batch && e.kind() != ErrorKind::kBug)
        RefuseFixed("the file has it ({})", e.what());
      RethrowWithPrefix(std::current_exception(), Describe());
    }
    for (const auto& [argument, shape] : given) CheckTaken(argument, shape, names, in, states, aux);
  }
  const std::vector<std::string> outputs = property->ListOutputs();
  const int visible = property->NumVisibleOutputs();  // may list all of them
  std::vector<std::string> references;
  for (int i = 0; i < visible; ++i) {
    const auto at = static_cast<size_t>(i);
    const std::string reference = visible == 1 ? layer.name : layer.name + "." + outputs[at];
    for (const auto& shapes : out) {
      if (!shapes[at].known()) Refuse("the shape of its output {} is unknown", i);
      // Size throws for a result beyond all memory.
      if (shapes[at].ndim() > 0 && shapes[at].Size() == 0)
        Refuse("its output {} is empty", shapes[at].ToString());
    }
    state_.shapes[reference] = {out[0][at], out[1][at]};
    references.push_back(reference);
  }
  state_.net.layers.push_back(std::move(layer));
  return references;
}

std::string ImportNode::Add(const std::string& op, const std::vector<std::string>& inputs,
                            const Kwargs& params, std::vector<Argument> arguments) {
  const std::string name = format("{}_{}", name_, mxtrain::Lower(op));
  return AddLayer(op, name, inputs, params, std::move(arguments))[0];
}

std::vector<std::string> ImportNode::AddAll(const std::string& op,
                                            const std::vector<std::string>& inputs,
                                            const Kwargs& params) {
  return AddLayer(op, format("{}_{}", name_, mxtrain::Lower(op)), inputs, params, {});
}

void ImportNode::Out(const std::string& op, const std::vector<std::string>& inputs,
                     const Kwargs& params, std::vector<Argument> arguments, int output) {
  OutIs(AddLayer(op, name_, inputs, params, std::move(arguments))[0], output);
  state_.values[node_.outputs[static_cast<size_t>(output)]].layer =
      static_cast<int>(state_.net.layers.size()) - 1;
}

void ImportNode::OutAll(const std::string& op, const std::vector<std::string>& inputs,
                        const Kwargs& params) {
  const std::vector<std::string> references = AddLayer(op, name_, inputs, params, {});
  for (size_t i = 0; i < references.size() && i < node_.outputs.size(); ++i)
    OutIs(references[i], static_cast<int>(i));
}

void ImportNode::OutIs(const std::string& reference, int output) {
  ImportValue value;
  value.shape = ShapesOf(reference);
  value.reference = reference;
  state_.values[node_.outputs[static_cast<size_t>(output)]] = std::move(value);
}

void ImportNode::OutArray(const Tensor& tensor, const std::string& array) {
  const auto shared = std::make_shared<const Tensor>(tensor);
  OutConstant({shared, shared});
  state_.values[node_.outputs[0]].array = array;
}

void ImportNode::OutConstant(std::array<std::shared_ptr<const Tensor>, 2> tensors, int output) {
  ImportValue value;
  value.shape = {ShapeOf(*tensors[0]), ShapeOf(*tensors[1])};
  value.type = tensors[0]->type;
  value.constant = std::move(tensors);
  state_.values[node_.outputs[static_cast<size_t>(output)]] = std::move(value);
}

std::string ImportNode::Reshape(const std::string& reference, const Shapes& to) {
  const Shapes& from = ShapesOf(reference);
  if (from == to) return reference;
  if (to[0].ndim() != to[1].ndim()) Refuse("the rank of its output depends on the batch");
  // The operators for nets leave at least one axis.
  if (to[0].ndim() == 0) return Add("_reshape_to", {reference}, {{"shape", "()"}});
  std::vector<int64_t> codes;
  int open = 0;
  for (int i = 0; i < to[0].ndim(); ++i) {
    const bool differs = to[0][i] != to[1][i];
    const bool copied =
        differs && i < from[0].ndim() && from[0][i] == to[0][i] && from[1][i] == to[1][i];
    if (to[0][i] == 0) Refuse("its output {} is empty", to[0].ToString());
    codes.push_back(!differs ? to[0][i] : copied ? 0 : -1);
    open += differs && !copied;
  }
  if (open > 1) Refuse("several axes of its output depend on the size of the batch");
  return Add("Reshape", {reference},
             {{"shape", TShape(std::span<const int64_t>(codes)).ToTuple()}});
}

bool ImportNode::is_one_number(int i) const {
  if (!has(i) || !in(i).is_constant() || in(i).is_array()) return false;
  const auto& constant = in(i).constant;
  const auto size = static_cast<size_t>(SizeOf(constant[0]->type));
  if (size == 0 || constant[0]->bytes.empty()) return false;
  const std::string_view first = std::string_view(constant[0]->bytes).substr(0, size);
  return std::ranges::all_of(constant, [&](const std::shared_ptr<const Tensor>& tensor) {
    const std::string_view bytes = tensor->bytes;  // each element is like the one before it
    return bytes.starts_with(first) && bytes.substr(size) == bytes.substr(0, bytes.size() - size);
  });
}

std::string ImportNode::OneNumber(int i, int ndim) {
  const Tensor& tensor = *in(i).constant[0];
  const Tensor one{tensor.type, std::vector<int64_t>(static_cast<size_t>(ndim), 1),
                   tensor.bytes.substr(0, static_cast<size_t>(SizeOf(tensor.type)))};
  return Variable(node_.inputs[static_cast<size_t>(i)], one);
}

std::string ImportNode::OfRank(int i, int ndim) {
  const std::string reference = ref(i, ndim);
  Shapes to = ShapesOf(reference);
  if (to[0].ndim() == ndim) return reference;
  for (TShape& shape : to) {
    std::vector<int64_t> dims(static_cast<size_t>(ndim - shape.ndim()), 1);
    dims.insert(dims.end(), shape.begin(), shape.end());
    shape = TShape(std::span<const int64_t>(dims));
  }
  return Reshape(reference, to);
}

ImportedNet::Layer* ImportNode::LayerOf(int i) {
  const int layer = in(i).layer;
  return layer < 0 ? nullptr : &state_.net.layers[static_cast<size_t>(layer)];
}

void ImportNode::AddBias(int data, int bias) {
  ImportedNet::Layer& layer = *LayerOf(data);
  for (auto& [key, value] : layer.params) {
    if (key == "no_bias") value = "False";
  }
  const std::vector<float> numbers = array(bias).ToFloats();
  layer.arguments["bias"] = "";
  state_.AddArray(layer.name + "_bias",
                  Tensor::Floats({static_cast<int64_t>(numbers.size())}, numbers));
  const int index = in(data).layer;
  OutIs(layer.name);
  state_.values[node_.outputs[0]].layer = index;
}

}  // namespace mxtrain::onnx
