// SPDX-License-Identifier: Apache-2.0
// Functions of elements that are several layers here, and those that need the place of an element.
#include <algorithm>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

void Round(ImportNode& node) {
  node.OutIs(RoundedToEven(node, node.ref(0)));
}

void IsInf(ImportNode& node) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const bool above = node.Int("detect_positive", 1) != 0,
             below = node.Int("detect_negative", 1) != 0;
  const std::string x = node.ref(0);
  if (above && below)
    return node.Out("_greater_scalar", {node.Add("abs", {x})}, {{"scalar", params::Print(kMost)}});
  if (above) return node.Out("_greater_scalar", {x}, {{"scalar", params::Print(kMost)}});
  if (below) return node.Out("_lesser_scalar", {x}, {{"scalar", params::Print(-kMost)}});
  node.Out("zeros_like", {x});
}

// max(0, x) + min(0, alpha (e^(x / alpha) - 1))
void Celu(ImportNode& node) {
  const float alpha = node.Float("alpha", 1);
  if (!(alpha > 0)) node.Refuse("its alpha is {}", alpha);
  const std::string x = node.ref(0);
  const std::string grown = node.Add("expm1", {WithNumber(node, "_div_scalar", x, alpha)});
  const std::string below =
      WithNumber(node, "_minimum_scalar", WithNumber(node, "_mul_scalar", grown, alpha), 0);
  node.Out("elemwise_add", {node.Add("relu", {x}), below});
}

void Shrink(ImportNode& node) {
  const double lambda = node.Float("lambd", 0.5f), bias = node.Float("bias", 0);
  const std::string x = node.ref(0), zeros = node.Add("zeros_like", {x});
  const std::string below = node.Add("where", {WithNumber(node, "_lesser_scalar", x, -lambda),
                                               WithNumber(node, "_plus_scalar", x, bias), zeros});
  node.Out("where", {WithNumber(node, "_greater_scalar", x, lambda),
                     WithNumber(node, "_minus_scalar", x, bias), below});
}

void ThresholdedRelu(ImportNode& node) {
  const std::string x = node.ref(0);
  const std::string above = WithNumber(node, "_greater_scalar", x, node.Float("alpha", 1));
  node.Out("where", {above, x, node.Add("zeros_like", {x})});
}

void Swish(ImportNode& node) {
  const std::string x = node.ref(0);
  const std::string slope =
      node.Add("sigmoid", {WithNumber(node, "_mul_scalar", x, node.Float("alpha", 1))});
  node.Out("elemwise_mul", {x, slope});
}

// The swish of one input times the other.
void SwiGlu(ImportNode& node) {
  const std::string gate = node.ref(0);
  const std::string slope =
      node.Add("sigmoid", {WithNumber(node, "_mul_scalar", gate, node.Float("alpha", 1))});
  node.OutIs(Pair(node, "mul", node.Add("elemwise_mul", {gate, slope}), node.ref(1)));
}

void Mean(ImportNode& node) {
  std::string sum = node.ref(0);
  for (int i = 1; i < node.num_inputs(); ++i) sum = Pair(node, "add", sum, node.ref(i));
  node.Out("_div_scalar", {sum}, {{"scalar", params::Print(node.num_inputs())}});
}

// Bits of an unsigned integer; 0 for other types.
int BitsOf(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return 8;
    case ElementType::kUint16:
      return 16;
    default:
      return 0;
  }
}

// By as many bits as the other input says. Wider numbers are not exact in float32.
void BitShift(ImportNode& node) {
  const int bits = BitsOf(node.in(0).type);
  const std::string direction = node.Word("direction", "");
  if (bits == 0) node.Refuse("only numbers of 8 and 16 bits without a sign are exact here");
  if (direction != "LEFT" && direction != "RIGHT")
    Throw(ErrorKind::kData, "{}: there is no direction '{}'", node.Describe(), direction);
  const std::string factor = node.Add("_rpower_scalar", {node.ref(1, 1)}, {{"scalar", "2"}});
  if (direction == "RIGHT") return node.Out("floor", {Pair(node, "div", node.ref(0, 1), factor)});
  const std::string product = Pair(node, "mul", node.ref(0, 1), factor);
  node.Out("_mod_scalar", {product}, {{"scalar", params::Print(int64_t{1} << bits)}});
}

// Everything is float32 here: truth values are 0 and 1, integers are whole numbers.
void CastLike(ImportNode& node) {
  const ElementType to = node.in(1).type;
  if (to == ElementType::kBool)
    return node.Out("_not_equal_scalar", {node.ref(0)}, {{"scalar", "0"}});
  if (IsInteger(to) && !IsInteger(node.in(0).type) && !node.is_truth(0))
    return node.Out("trunc", {node.ref(0)});
  node.OutIs(node.ref(0));
}

// --- by the place of an element ---

// The triangle of matrices on or above the k-th diagonal, or on or below it.
void Trilu(ImportNode& node) {
  const std::string x = node.ref(0);
  const int ndim = node.ndim();
  if (ndim < 2) Throw(ErrorKind::kData, "{}: its data are no matrices", node.Describe());
  const int64_t rows = FixedLength(node, x, ndim - 2), columns = FixedLength(node, x, ndim - 1);
  const std::vector<int64_t> diagonal = node.has(1) ? node.ints(1) : std::vector<int64_t>{0};
  if (diagonal.size() != 1)
    Throw(ErrorKind::kData, "{}: its diagonal is not one number", node.Describe());
  if (rows > 0 && columns > kMostOwnElements / rows) node.Refuse("its matrices are too large");
  const int64_t k = std::clamp(diagonal[0], -kMostOwnElements, kMostOwnElements);
  const bool upper = node.Int("upper", 1) != 0;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) kept.push_back(upper ? j - i >= k : j - i <= k);
  }
  std::vector<int64_t> dims(static_cast<size_t>(ndim), 1);
  dims[dims.size() - 2] = rows;
  dims[dims.size() - 1] = columns;
  node.OutIs(Chosen(node, node.OwnArray("triangle", Tensor::Ints(dims, kept)), x,
                    node.Add("zeros_like", {x})));
}

// 1 at the first of the largest elements of an axis.
void Hardmax(ImportNode& node) {
  const bool flat = node.opset() < 13;
  const int ndim = node.ndim(), first = node.Axis(node.Int("axis", flat ? 1 : -1), ndim);
  const std::string x = node.ref(0);
  Shapes rows = node.in(0).shape;
  // Before opset 13 all axes from this one on are one.
  int axis = first;
  if (flat) {
    for (TShape& s : rows) s = TShape{s.Product(0, first), s.Product(first, ndim)};
    axis = 1;
  }
  const std::string data = node.Reshape(x, rows);
  const int last = rows[0].ndim() - 1;
  const std::string at = node.Add("argmax", {data}, {{"axis", params::Print(axis)}});
  const std::string ones =
      node.Add("one_hot", {at}, {{"depth", params::Print(FixedLength(node, data, axis))}});
  std::vector<int64_t> order;
  for (int i = 0; i < last; ++i) order.push_back(i);
  order.insert(order.begin() + axis, last);
  node.OutIs(node.Reshape(Permuted(node, ones, order), node.in(0).shape));
}

}  // namespace

std::vector<ImportEntry> FunctionImports() {
  return {
      {"Round", Round},
      {"IsInf", IsInf},
      {"Celu", Celu},
      {"Shrink", Shrink},
      {"ThresholdedRelu", ThresholdedRelu},
      {"Swish", Swish},
      {"SwiGLU", SwiGlu},
      {"Mean", Mean},
      {"BitShift", BitShift},
      {"CastLike", CastLike},
      {"Trilu", Trilu},
      {"Hardmax", Hardmax},
  };
}

}  // namespace mxtrain::onnx
