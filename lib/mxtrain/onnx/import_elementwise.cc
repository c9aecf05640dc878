// SPDX-License-Identifier: Apache-2.0
// Functions of elements: activations, unary and binary functions.
#include <algorithm>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/function_names.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

std::string Number(double value) {
  return params::Print(value);
}

void Unary(ImportNode& node) {
  node.Out(OurUnary(node.op()), {node.ref(0)});
}

void Activation(ImportNode& node) {
  node.Out("Activation", {node.ref(0)}, {{"act_type", OurActivation(node.op())}});
}

void Leaky(ImportNode& node, const std::string& type, const std::string& attribute,
           float otherwise) {
  node.Out("LeakyReLU", {node.ref(0)},
           {{"act_type", type}, {"slope", params::Print(node.Float(attribute, otherwise))}});
}

void Selu(ImportNode& node) {
  const bool usual = std::abs(node.Float("alpha", 1.6732632f) - 1.6732632f) < 1e-4f &&
                     std::abs(node.Float("gamma", 1.0507010f) - 1.0507010f) < 1e-4f;
  if (!usual) node.Refuse("alpha or gamma are not those of the paper");
  node.Out("LeakyReLU", {node.ref(0)}, {{"act_type", "selu"}});
}

// The slopes: one, one per channel, or of the last axes.
void PRelu(ImportNode& node) {
  const Tensor& slope = node.array(1);
  const int64_t size = slope.Size(), channels = node.ndim() > 1 ? node.shape(0)[1] : 1;
  const auto at = static_cast<int>(slope.dims.size()) - (node.ndim() - 1);
  const bool per_channel =
      size == 1 || (size == channels && at >= 0 && slope.dims[static_cast<size_t>(at)] == channels);
  node.NameAfter(node.in(1).array);
  Tensor slopes = slope;
  if (per_channel) slopes.dims = {size};
  // Of one axis they would be those of channels.
  if (!per_channel && slopes.dims.size() < 2) slopes.dims.insert(slopes.dims.begin(), 1);
  node.Out("LeakyReLU", {node.ref(0)}, {{"act_type", "prelu"}},
           {node.ArgumentOf(1, "gamma", std::move(slopes), per_channel ? "flat" : "as it is")});
}

// A bound that is a number; nothing for one that is computed of the data or missing. The largest
// integers, which stand for none, are beyond all that are exact here.
std::optional<double> BoundOf(const ImportNode& node, int i, const std::string& name) {
  if (node.has(i) && !node.is_array(i)) return std::nullopt;
  if (node.has(i) && node.array(i).Size() == 1 && InexactInteger(node.array(i))) {
    const double bound = node.array(i).Doubles()[0];
    if ((i == 1) == (bound < 0)) return bound;
  }
  return node.NumberOfInputOr(i, name);
}

// A least element above the largest one leaves the largest one.
void Clip(ImportNode& node) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const std::optional<double> least = BoundOf(node, 1, "min"), most = BoundOf(node, 2, "max");
  if ((node.has(1) && !least) || (node.has(2) && !most)) {
    const std::string low =
        node.has(1) ? node.Add("broadcast_maximum", {node.ref(0), node.OfRank(1, node.ndim())})
                    : node.ref(0);
    if (!node.has(2)) return node.OutIs(low);
    return node.Out("broadcast_minimum", {low, node.OfRank(2, node.ndim())});
  }
  const double high = most.value_or(kMost);
  node.Out("clip", {node.ref(0)},
           {{"a_min", params::Print(static_cast<float>(std::min(least.value_or(-kMost), high)))},
            {"a_max", params::Print(static_cast<float>(high))}});
}

void HardSigmoid(ImportNode& node) {
  node.Out("hard_sigmoid", {node.ref(0)},
           {{"alpha", params::Print(node.Float("alpha", 0.2f))},
            {"beta", params::Print(node.Float("beta", 0.5f))}});
}

void Gelu(ImportNode& node) {
  node.Out("gelu", {node.ref(0)}, {{"approximate", node.Word("approximate", "none")}});
}

// --- functions of two values ---

bool IsNumber(const ImportNode& node, int i) {
  return node.is_array(i) && node.array(i).Size() == 1 &&
         node.array(i).dims.size() <= static_cast<size_t>(node.ndim(1 - i));
}

// Of references whose shapes are known.
std::string BinaryOp(const BinaryName& name, const Shapes& a, const Shapes& b) {
  return a == b ? name.ours : name.broadcast;
}

// FullyConnected without bias, then the sum with a vector that only it adds.
bool TakesBias(ImportNode& node, int data, int bias) {
  if (node.op() != "Add" || !node.is_array(bias)) return false;
  const ImportedNet::Layer* layer = node.LayerOf(data);
  const Tensor& vector = node.array(bias);
  const TShape& shape = node.shape(data);
  return layer && layer->op == "FullyConnected" && !layer->arguments.contains("bias") &&
         node.OnlyReader(data) && vector.Size() == shape[shape.ndim() - 1] &&
         vector.dims.size() <= static_cast<size_t>(shape.ndim()) && !vector.dims.empty() &&
         vector.dims.back() == vector.Size();
}

// A layer of two inputs.
struct PairLayer {
  std::string op;
  std::vector<std::string> inputs;
  Kwargs params;
};

// Arrays of the file have at least one axis in the net.
int RankOfAll(const ImportNode& node) {
  int ndim = 0;
  for (int i = 0; i < node.num_inputs(); ++i)
    ndim = std::max({ndim, node.ndim(i), node.in(i).is_constant() ? 1 : 0});
  return ndim;
}

PairLayer PairOf(ImportNode& node, const BinaryName& name) {
  if (IsNumber(node, 0) || IsNumber(node, 1)) {
    const int number = IsNumber(node, 1) ? 1 : 0;
    // f(x, s); of what is not the same the other way round, f(s, x) if there is an operator.
    const bool symmetric =
        name.onnx == std::string_view("Add") || name.onnx == std::string_view("Mul") ||
        name.onnx == std::string_view("Max") || name.onnx == std::string_view("Min") ||
        name.onnx == std::string_view("Equal") || name.kind == BinaryName::kLogical;
    const char* op = number == 1 || symmetric ? name.scalar : name.reversed;
    if (op) RequireExact(node, number);
    if (op)
      return {op, {node.ref(1 - number)}, {{"scalar", Number(node.array(number).Doubles()[0])}}};
  }
  const int ndim = RankOfAll(node);
  const std::string a = node.OfRank(0, ndim), b = node.OfRank(1, ndim);
  return {BinaryOp(name, node.ShapesOf(a), node.ShapesOf(b)), {a, b}, {}};
}

// Before opset 7 an attribute says to which axes of the first input the second belongs.
void CheckBroadcastAxis(const ImportNode& node) {
  if (node.opset() >= 7 || !node.has("axis")) return;
  if (node.Axis(node.Int("axis", 0), node.ndim()) != node.ndim() - node.ndim(1))
    node.Refuse("its second input is repeated along the last axes");
}

void Binary(ImportNode& node) {
  const BinaryName& name = *FindOnnxBinary(node.op());
  CheckBroadcastAxis(node);
  if (node.num_inputs() != 2 && name.kind != BinaryName::kNumbers)
    Throw(ErrorKind::kData, "{}: {} inputs instead of two", node.Describe(), node.num_inputs());
  if (node.num_inputs() == 2) {
    for (const int bias : {1, 0}) {
      if (TakesBias(node, 1 - bias, bias)) return node.AddBias(1 - bias, bias);
    }
    const PairLayer pair = PairOf(node, name);
    // Of integers the quotient is truncated.
    if (node.op() != "Div" || !node.is_integers(0) || !node.is_integers(1))
      return node.Out(pair.op, pair.inputs, pair.params);
    return node.Out("trunc", {node.Add(pair.op, pair.inputs, pair.params)});
  }
  // Max, Min and Sum of any number of values, pair by pair.
  const int ndim = RankOfAll(node);
  std::string result = node.OfRank(0, ndim);
  if (node.num_inputs() == 1) return node.OutIs(result);
  for (int i = 1; i < node.num_inputs(); ++i) {
    const std::string next = node.OfRank(i, ndim);
    const std::string op = BinaryOp(name, node.ShapesOf(result), node.ShapesOf(next));
    if (i + 1 == node.num_inputs()) return node.Out(op, {result, next});
    result = node.Add(op, {result, next});
  }
}

// The remainder has the sign of the divisor or, with fmod, that of the dividend.
void Mod(ImportNode& node) {
  constexpr BinaryName kMod = {BinaryName::kNumbers, "Mod",         "_mod",
                               "broadcast_mod",      "_mod_scalar", "_rmod_scalar"};
  if (node.num_inputs() != 2)
    Throw(ErrorKind::kData, "{}: {} inputs instead of two", node.Describe(), node.num_inputs());
  if (node.Int("fmod", 0) == 0) {
    if (node.opset() >= 28 && !node.is_integers(0))
      node.Refuse(
          "since opset 28 fmod = 0 is defined for infinite fractions and zeros, differently");
    const PairLayer pair = PairOf(node, kMod);
    return node.Out(pair.op, pair.inputs, pair.params);
  }
  const int ndim = RankOfAll(node);
  const std::string a = node.OfRank(0, ndim), b = node.OfRank(1, ndim);
  const bool same = node.ShapesOf(a) == node.ShapesOf(b);
  const std::string rest =
      node.Add(same ? kMod.ours : kMod.broadcast, {node.Add("abs", {a}), node.Add("abs", {b})});
  node.Out(same ? "elemwise_mul" : "broadcast_mul", {rest, node.Add("sign", {a})});
}

// Of one shape; of several they broadcast, one after the other.
void Sum(ImportNode& node) {
  const int ndim = RankOfAll(node);
  std::vector<std::string> inputs;
  bool same = true;
  for (int i = 0; i < node.num_inputs(); ++i) {
    inputs.push_back(node.OfRank(i, ndim));
    same = same && node.ShapesOf(inputs[0]) == node.ShapesOf(inputs.back());
  }
  if (same)
    return node.Out("ElementWiseSum", inputs, {{"num_args", params::Print(node.num_inputs())}});
  for (size_t i = 1; i + 1 < inputs.size(); ++i)
    inputs[0] = node.Add("broadcast_add", {inputs[0], inputs[i]});
  node.Out("broadcast_add", {inputs[0], inputs.back()});
}

// The input that has the shape to which all broadcast; -1: none.
int LargestInput(ImportNode& node, const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto covers = [&node, &whole = node.ShapesOf(inputs[i])](const std::string& other) {
      const Shapes& shapes = node.ShapesOf(other);
      for (size_t batch = 0; batch < 2; ++batch) {
        for (int axis = 0; axis < whole[batch].ndim(); ++axis) {
          const int64_t length = shapes[batch][axis];
          if (length != 1 && length != whole[batch][axis]) return false;
        }
      }
      return true;
    };
    if (std::ranges::all_of(inputs, covers)) return static_cast<int>(i);
  }
  return -1;
}

void Where(ImportNode& node) {
  const int ndim = RankOfAll(node);
  std::vector<std::string> inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(node.is_one_number(i) ? node.OneNumber(i, ndim) : node.OfRank(i, ndim));
  const int largest = LargestInput(node, inputs);
  if (largest < 0)
    node.Refuse("none of its condition {} and values {} and {} has the shape of the result",
                node.shape(0).ToString(), node.shape(1).ToString(), node.shape(2).ToString());
  const std::string whole = inputs[static_cast<size_t>(largest)];
  for (std::string& input : inputs) {
    if (!(node.ShapesOf(input) == node.ShapesOf(whole)))
      input = node.Add("broadcast_like", {input, whole});
  }
  node.Out("where", inputs);
}

void IsNan(ImportNode& node) {
  const std::string x = node.ref(0);
  node.Out("_not_equal", {x, x});
}

}  // namespace

std::vector<ImportEntry> ElementwiseImports() {
  std::vector<ImportEntry> entries = {
      // Before the functions of the same names, which have no parameters.
      {"Relu", Activation},
      {"Sigmoid", Activation},
      {"Tanh", Activation},
      {"Softplus", Activation},
      {"Softsign", Activation},
      {"LeakyRelu", [](ImportNode& node) { Leaky(node, "leaky", "alpha", 0.01f); }},
      {"Elu", [](ImportNode& node) { Leaky(node, "elu", "alpha", 1); }},
      {"Selu", Selu},
      {"PRelu", PRelu},
      {"Clip", Clip},
      {"HardSigmoid", HardSigmoid},
      {"HardSwish", [](ImportNode& node) { node.Out("hard_swish", {node.ref(0)}); }},
      {"Mish", [](ImportNode& node) { node.Out("mish", {node.ref(0)}); }},
      {"Gelu", Gelu},
      {"Not", [](ImportNode& node) { node.Out("logical_not", {node.ref(0)}); }},
      {"Sum", Sum},
      {"Mod", Mod},
      {"Where", Where},
      {"IsNaN", IsNan},
  };
  for (const UnaryName& name : UnaryNames()) entries.push_back({name.onnx, Unary});
  for (const BinaryName& name : BinaryNames()) entries.push_back({name.onnx, Binary});
  return entries;
}

}  // namespace mxtrain::onnx
