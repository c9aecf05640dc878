// SPDX-License-Identifier: Apache-2.0
// Functions of elements: activations, unary and binary functions, numbers.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/onnx/internal/function_names.h"

namespace mxtrain::onnx {
namespace {

// --- functions that are one operator of ONNX ---

void Unary(ExportNode& node) {
  node.Out(OnnxUnary(node.op()), {node.in(0)});
}

void Activation(ExportNode& node) {
  node.Out(OnnxActivation(node.Text("act_type")), {node.in(0)});
}

// Of two arrays, or of an array and a number. Comparisons give 0 and 1.
void Binary(ExportNode& node, const BinaryName& name, const std::string& a, const std::string& b) {
  switch (name.kind) {
    case BinaryName::kNumbers:
      return node.Out(name.onnx, {a, b});
    case BinaryName::kComparison:
      return node.Out("Cast", {node.Add(name.onnx, {a, b})}, {{"to", int64_t{1}}});
    case BinaryName::kNegatedComparison:
      return node.Out("Cast", {node.Add("Not", {node.Add(name.onnx, {a, b})})},
                      {{"to", int64_t{1}}});
    case BinaryName::kLogical:
      return node.Out("Cast", {node.Add(name.onnx, {node.AsBool(a), node.AsBool(b)})},
                      {{"to", int64_t{1}}});
  }
}

void BinaryOfArrays(ExportNode& node) {
  Binary(node, *FindBinary(node.op()), node.in(0), node.in(1));
}

void BinaryWithScalar(ExportNode& node) {
  bool reversed = false;
  const BinaryName& name = *FindScalar(node.op(), &reversed);
  const std::string scalar = node.Scalar(node.Number("scalar"));
  if (reversed) return Binary(node, name, scalar, node.in(0));
  Binary(node, name, node.in(0), scalar);
}

void Hypot(ExportNode& node) {
  const auto square = [&node](const std::string& x) { return node.Add("Mul", {x, x}); };
  node.Out("Sqrt", {node.Add("Add", {square(node.in(0)), square(node.in(1))})});
}

void HypotScalar(ExportNode& node) {
  const float scalar = node.Number("scalar");
  const std::string square = node.Add("Mul", {node.in(0), node.in(0)});
  node.Out("Sqrt", {node.Add("Add", {square, node.Scalar(scalar * scalar)})});
}

void Sum(ExportNode& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.in(i));
  node.Out("Sum", inputs);
}

// --- functions that are several ---

// x times a constant, or plus one, before or after another function.
void Scaled(ExportNode& node, const std::string& function, float factor) {
  const std::string value = function.empty() ? node.in(0) : node.Add(function, {node.in(0)});
  node.Out("Mul", {value, node.Scalar(factor)});
}

// sign(x) f(|x|).
template <typename F>
void Odd(ExportNode& node, const F& of_magnitude) {
  const std::string sign = node.Add("Sign", {node.in(0)});
  node.Out("Mul", {sign, of_magnitude(node.Add("Abs", {node.in(0)}))});
}

std::string PlusScalar(ExportNode& node, const std::string& x, float scalar) {
  return node.Add("Add", {x, node.Scalar(scalar)});
}
std::string TimesScalar(ExportNode& node, const std::string& x, float scalar) {
  return node.Add("Mul", {x, node.Scalar(scalar)});
}

void GeluByErf(ExportNode& node) {
  const std::string x = node.in(0);
  const std::string erf = node.Add("Erf", {TimesScalar(node, x, 0.70710678f)});
  node.Out("Mul", {TimesScalar(node, x, 0.5f), PlusScalar(node, erf, 1)});
}

void Gelu(ExportNode& node) {
  if (!node.Is("approximate", "tanh")) return GeluByErf(node);
  const std::string x = node.in(0);
  const std::string cube =
      TimesScalar(node, node.Add("Mul", {x, node.Add("Mul", {x, x})}), 0.044715f);
  const std::string inner = TimesScalar(node, node.Add("Add", {x, cube}), 0.79788456f);
  node.Out("Mul", {TimesScalar(node, x, 0.5f), PlusScalar(node, node.Add("Tanh", {inner}), 1)});
}

void LeakyRelu(ExportNode& node) {
  const std::string& type = node.Text("act_type");
  if (type == "leaky")
    return node.Out("LeakyRelu", {node.in(0)}, {{"alpha", node.Number("slope")}});
  if (type == "elu") return node.Out("Elu", {node.in(0)}, {{"alpha", node.Number("slope")}});
  if (type == "selu") return node.Out("Selu", {node.in(0)});
  if (type == "gelu") return GeluByErf(node);
  if (type == "rrelu") {
    const float mean = (node.Number("lower_bound") + node.Number("upper_bound")) / 2;
    return node.Out("LeakyRelu", {node.in(0)}, {{"alpha", mean}});
  }
  const TShape& gamma = node.in_shape(1);
  const bool per_channel = gamma.ndim() == 1 && gamma[0] > 1;
  node.Out("PRelu", {node.in(0), per_channel ? node.AlongAxis(node.in(1), gamma[0], 1, node.ndim())
                                             : node.in(1)});
}

void Clip(ExportNode& node) {
  const std::string low = node.Scalar(node.Number("a_min")),
                    high = node.Scalar(node.Number("a_max"));
  node.Out("Clip", {node.in(0), low, high});
}

void HardSigmoid(ExportNode& node) {
  node.Out("HardSigmoid", {node.in(0)},
           {{"alpha", node.Number("alpha")}, {"beta", node.Number("beta")}});
}

void Constant(ExportNode& node, float value) {
  node.Out("ConstantOfShape", {node.Add("Shape", {node.in(0)})},
           {{"value", Tensor::Floats({1}, {value})}});
}

void FullLike(ExportNode& node) {
  const std::string& dtype = node.Text("dtype");
  if (dtype == "None" || dtype == "float32") return Constant(node, node.Number("fill_value"));
  const int64_t value = node.Truncated(node.Get<double>("fill_value"));
  node.OutAs(dtype, node.Add("ConstantOfShape", {node.Add("Shape", {node.in(0)})},
                             {{"value", Tensor::Ints({1}, {value})}}));
}

void Cast(ExportNode& node) {
  if (node.Is("dtype", NameOf(node.in_type(0)))) return node.OutIs(node.in(0));
  node.OutAs(node.Text("dtype"), node.in(0));
}

// The remainder with the sign of the divisor, 0 for a divisor of 0; fmod has the sign of the
// dividend.
void Remainder(ExportNode& node, const std::string& a, const std::string& b) {
  const std::string zero = node.Scalar(0);
  const std::string rest = node.Add("Mod", {a, b}, {{"fmod", int64_t{1}}});
  const std::string differs =
      node.Add("Xor", {node.Add("Less", {rest, zero}), node.Add("Less", {b, zero})});
  const std::string is_zero =
      node.Add("Or", {node.Add("Equal", {rest, zero}), node.Add("Not", {differs})});
  const std::string remainder = node.Add("Where", {is_zero, rest, node.Add("Add", {rest, b})});
  node.Out("Where", {node.Add("Equal", {b, zero}), zero, remainder});
}

void Quadratic(ExportNode& node) {
  const std::string x = node.in(0), square = node.Add("Mul", {x, x});
  const std::string sum = node.Add(
      "Add", {TimesScalar(node, square, node.Number("a")), TimesScalar(node, x, node.Number("b"))});
  node.Out("Add", {sum, node.Scalar(node.Number("c"))});
}

void SmoothL1(ExportNode& node) {
  const float square = node.Number("scalar") * node.Number("scalar");
  const std::string x = node.in(0), magnitude = node.Add("Abs", {x});
  const std::string is_far = node.Add("Greater", {magnitude, node.Scalar(1 / square)});
  const std::string parabola = TimesScalar(node, node.Add("Mul", {x, x}), 0.5f * square);
  node.Out("Where", {is_far, PlusScalar(node, magnitude, -0.5f / square), parabola});
}

// Halves round away from zero here, to even in ONNX. The fraction of x is exact; x + 0.5 is not.
void Round(ExportNode& node) {
  Odd(node, [&node](const std::string& x) {
    const std::string down = node.Add("Floor", {x});
    const std::string goes_up =
        node.Add("GreaterOrEqual", {node.Add("Sub", {x, down}), node.Scalar(0.5f)});
    return node.Add("Where", {goes_up, PlusScalar(node, down, 1), down});
  });
}
// Halves round down, computed as the operator does.
void RoundHalvesDown(ExportNode& node) {
  const std::string x = node.in(0), down = node.Add("Floor", {x}), up = node.Add("Ceil", {x});
  const std::string goes_up =
      node.Add("Greater", {node.Add("Sub", {x, down}), node.Add("Sub", {up, x})});
  node.Out("Where", {goes_up, up, down});
}
void Truncate(ExportNode& node) {
  Odd(node, [&node](const std::string& x) { return node.Add("Floor", {x}); });
}
std::string CubeRoot(ExportNode& node) {
  const std::string root = node.Add("Pow", {node.Add("Abs", {node.in(0)}), node.Scalar(1.0f / 3)});
  return node.Add("Mul", {node.Add("Sign", {node.in(0)}), root});
}

}  // namespace

std::vector<ExportEntry> ElementwiseExports() {
  std::vector<ExportEntry> entries = {
      {"Activation", Activation},
      {"LeakyReLU", LeakyRelu},
      {"gelu", Gelu},
      {"clip", Clip},
      {"hard_sigmoid", HardSigmoid},
      {"hard_swish", [](ExportNode& node) { node.Out("HardSwish", {node.in(0)}); }},
      {"silu",
       [](ExportNode& node) {
         node.Out("Mul", {node.in(0), node.Add("Sigmoid", {node.in(0)})});
       }},
      {"mish",
       [](ExportNode& node) {
         const std::string gate = node.Add("Tanh", {node.Add("Softplus", {node.in(0)})});
         node.Out("Mul", {node.in(0), gate});
       }},
      {"log_sigmoid",
       [](ExportNode& node) {
         node.Out("Neg", {node.Add("Softplus", {node.Add("Neg", {node.in(0)})})});
       }},
      {"ElementWiseSum", Sum},
      {"_grad_add", Sum},
      {"Cast", Cast},
      {"_hypot", Hypot},
      {"broadcast_hypot", Hypot},
      {"_hypot_scalar", HypotScalar},
      {"_copy", [](ExportNode& node) { node.OutIs(node.in(0)); }},
      {"square",
       [](ExportNode& node) {
         node.Out("Mul", {node.in(0), node.in(0)});
       }},
      {"rsqrt", [](ExportNode& node) { node.Out("Reciprocal", {node.Add("Sqrt", {node.in(0)})}); }},
      {"log2", [](ExportNode& node) { Scaled(node, "Log", 1.44269504f); }},
      {"log10", [](ExportNode& node) { Scaled(node, "Log", 0.43429448f); }},
      {"log1p", [](ExportNode& node) { node.Out("Log", {PlusScalar(node, node.in(0), 1)}); }},
      {"expm1",
       [](ExportNode& node) {
         node.Out("Add", {node.Add("Exp", {node.in(0)}), node.Scalar(-1)});
       }},
      {"degrees", [](ExportNode& node) { Scaled(node, "", 57.2957795f); }},
      {"radians", [](ExportNode& node) { Scaled(node, "", 0.01745329252f); }},
      {"round", Round},
      {"round_ste", Round},
      {"rint", RoundHalvesDown},
      {"trunc", Truncate},
      {"fix", Truncate},
      {"cbrt", [](ExportNode& node) { node.OutIs(CubeRoot(node)); }},
      {"rcbrt", [](ExportNode& node) { node.Out("Reciprocal", {CubeRoot(node)}); }},
      {"sign_ste", [](ExportNode& node) { node.Out("Sign", {node.in(0)}); }},
      {"quadratic", Quadratic},
      {"smooth_l1", SmoothL1},
      {"_mod", [](ExportNode& node) { Remainder(node, node.in(0), node.in(1)); }},
      {"broadcast_mod", [](ExportNode& node) { Remainder(node, node.in(0), node.in(1)); }},
      {"_mod_scalar",
       [](ExportNode& node) { Remainder(node, node.in(0), node.Scalar(node.Number("scalar"))); }},
      {"_rmod_scalar",
       [](ExportNode& node) { Remainder(node, node.Scalar(node.Number("scalar")), node.in(0)); }},
      {"logical_not",
       [](ExportNode& node) {
         node.Out("Cast", {node.Add("Not", {node.AsBool(node.in(0))})}, {{"to", int64_t{1}}});
       }},
      {"zeros_like", [](ExportNode& node) { Constant(node, 0); }},
      {"ones_like", [](ExportNode& node) { Constant(node, 1); }},
      {"full_like", FullLike},
  };
  for (const UnaryName& name : UnaryNames()) entries.push_back({name.ours, Unary});
  for (const BinaryName& name : BinaryNames()) {
    entries.push_back({name.ours, BinaryOfArrays});
    entries.push_back({name.broadcast, BinaryOfArrays});
    entries.push_back({name.scalar, BinaryWithScalar});
    if (name.reversed) entries.push_back({name.reversed, BinaryWithScalar});
  }
  return entries;
}

}  // namespace mxtrain::onnx
