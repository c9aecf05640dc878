// SPDX-License-Identifier: Apache-2.0
// Quantized numbers: weights become what they stand for, computed values are rounded to what the
// file rounds them to, with the gradient of the identity.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

struct QuantizedRange {
  double least, most;
};

QuantizedRange RangeOf(const ImportNode& node, ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return {0, 255};
    case ElementType::kInt8:
      return {-128, 127};
    case ElementType::kUint16:
      return {0, 65535};
    case ElementType::kInt16:
      return {-32768, 32767};
    default:
      node.Refuse("numbers of type {} have no equivalent", NameOf(type));
  }
}

// How the scales [...] lie along the data: one; one for each element of an axis; one for a block
// of it.
struct Layout {
  int axis = 0;
  int64_t block = 1;  // elements of the axis that share one
  bool single = false;
};

Layout LayoutOf(const ImportNode& node, const TShape& data, const TShape& scale) {
  Layout layout;
  layout.single = scale.Size() == 1 && scale.ndim() <= 1;
  if (layout.single) return layout;
  layout.axis = node.Axis(node.Int("axis", 1), data.ndim());
  const int64_t length = data[layout.axis];
  if (scale.ndim() == 1 && data.ndim() != 1) {
    if (scale[0] != length)
      Throw(ErrorKind::kData, "{}: {} scales for an axis of {}", node.Describe(), scale[0], length);
    return layout;
  }
  if (scale.ndim() != data.ndim())
    Throw(ErrorKind::kData, "{}: its scales {} do not fit {}", node.Describe(), scale.ToString(),
          data.ToString());
  if (scale.Size() == 0) node.Refuse("it has no scales");
  layout.block = node.Int("block_size", 0);
  if (layout.block == 0) layout.block = (length + scale[layout.axis] - 1) / scale[layout.axis];
  for (int i = 0; i < data.ndim(); ++i) {
    const int64_t wanted = i == layout.axis
                               ? (length + layout.block - 1) / std::max<int64_t>(1, layout.block)
                               : data[i];
    if (layout.block < 1 || scale[i] != wanted)
      Throw(ErrorKind::kData, "{}: its scales {} do not fit {}", node.Describe(), scale.ToString(),
            data.ToString());
  }
  return layout;
}

// Which scale an element has.
size_t ScaleAt(const TShape& data, const TShape& scale, const Layout& layout, int64_t element) {
  if (layout.single) return 0;
  int64_t index = 0, stride = 1, rest = element;
  for (int i = data.ndim() - 1; i >= 0; --i) {
    const int64_t at = rest % data[i];
    rest /= data[i];
    if (scale.ndim() == 1 && data.ndim() != 1) {
      if (i == layout.axis) return static_cast<size_t>(at);
      continue;
    }
    index += (i == layout.axis ? at / layout.block : at) * stride;
    stride *= scale[i];
  }
  return static_cast<size_t>(index);
}

// Of a weight: what it stands for, an array of the file like any other.
void DequantizeArray(ImportNode& node) {
  const Tensor& data = node.array(0);
  const TShape shape = ShapeOf(data), scales = node.shape(1);
  const Layout layout = LayoutOf(node, shape, scales);
  std::vector<double> values = data.Doubles();
  const std::vector<double> scale = node.array(1).Doubles();
  const std::vector<double> zero =
      node.has(2) ? node.array(2).Doubles() : std::vector<double>(scale.size(), 0);
  if (zero.size() != scale.size())
    Throw(ErrorKind::kData, "{}: {} scales and {} zero points", node.Describe(), scale.size(),
          zero.size());
  std::vector<float> numbers(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t at = ScaleAt(shape, scales, layout, static_cast<int64_t>(i));
    numbers[i] = static_cast<float>((values[i] - zero[at]) * scale[at]);
  }
  node.OutArray(Tensor::Floats(data.dims, numbers), node.in(0).array);
}

// Scales or zero points so that they broadcast with the data.
std::string Spread(ImportNode& node, int input) {
  const TShape& scale = node.shape(input);
  const Layout layout = LayoutOf(node, node.shape(0), scale);
  std::string value = node.ref(input, 1);
  if (layout.single) return value;
  if (scale.ndim() == 1 && node.ndim() != 1) {
    TShape to = TShape::OfRank(node.ndim());
    for (int i = 0; i < node.ndim(); ++i) to[i] = i == layout.axis ? scale[0] : 1;
    return node.Reshape(value, {to, to});
  }
  if (layout.block == 1) return value;
  value =
      node.Add("repeat", {value},
               {{"repeats", params::Print(layout.block)}, {"axis", params::Print(layout.axis)}});
  return Sliced(node, value, layout.axis, 0, FixedLength(node, node.ref(0), layout.axis));
}

void DequantizeLinear(ImportNode& node) {
  const bool of_file = node.is_array(0) && node.is_array(1) && (!node.has(2) || node.is_array(2));
  if (of_file) return DequantizeArray(node);
  std::string value = node.ref(0);
  if (node.has(2)) value = Pair(node, "sub", value, Spread(node, 2));
  node.OutIs(Pair(node, "mul", value, Spread(node, 1)));
}

void QuantizeLinear(ImportNode& node) {
  const auto given = static_cast<ElementType>(node.Int("output_dtype", 0));
  const ElementType type = node.has(2)                        ? node.in(2).type
                           : given != ElementType::kUndefined ? given
                                                              : ElementType::kUint8;
  const QuantizedRange range = RangeOf(node, type);
  const std::string quotient = Pair(node, "div", node.ref(0), Spread(node, 1));
  // x + (rounded - x), of which the bracket has no gradient.
  const std::string step = node.Add("elemwise_sub", {RoundedToEven(node, quotient), quotient});
  std::string value = node.Add("elemwise_add", {quotient, node.Add("BlockGrad", {step})});
  if (node.has(2)) value = Pair(node, "add", value, Spread(node, 2));
  node.Out("clip", {value},
           {{"a_min", params::Print(range.least)}, {"a_max", params::Print(range.most)}});
}

}  // namespace

std::vector<ImportEntry> QuantizedImports() {
  return {{"DequantizeLinear", DequantizeLinear}, {"QuantizeLinear", QuantizeLinear}};
}

}  // namespace mxtrain::onnx
