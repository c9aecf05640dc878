// SPDX-License-Identifier: Apache-2.0
// Convolution, fully connected layers, dropout.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"
#include "mxtrain/onnx/internal/import_windows.h"

namespace mxtrain::onnx {
namespace {

// An array of the file that has elements: of none, an axis may be of any length.
const Tensor& WeightOf(const ImportNode& node, int i) {
  const Tensor& weight = node.array(i);
  if (weight.Size() == 0) node.Refuse("its weight {} has no elements", ShapeOf(weight).ToString());
  return weight;
}

// Of the weight of a convolution, an array of the file or computed.
std::vector<int64_t> KernelOf(const ImportNode& node) {
  if (node.is_array(1)) WeightOf(node, 1);
  const TShape& weight = node.shape(1);
  if (!(weight == node.shape(1, 1)))
    node.Refuse("its weight {} depends on the size of the batch", weight.ToString());
  if (weight.ndim() != node.ndim() || node.ndim() < 3)
    node.Refuse("its weight has {} axes and its data have {}", weight.ndim(), node.ndim());
  return {weight.begin() + 2, weight.end()};
}

// A convolution or a transposed one.
void ConvBy(ImportNode& node, const std::string& op, const Windows& w, int64_t filters,
            Kwargs more) {
  std::vector<ImportNode::Argument> arguments;
  std::vector<std::string> inputs{node.ref(0)};
  if (node.is_array(1) && (!node.has(2) || node.is_array(2))) {
    arguments.push_back(node.ArgumentOf(1, "weight"));
    if (node.has(2)) arguments.push_back(node.ArgumentOf(2, "bias"));
    node.NameAfter(node.in(1).array);
  } else {
    inputs.push_back(node.ref(1));
    if (node.has(2)) inputs.push_back(node.ref(2));
  }
  Kwargs kwargs{{"num_filter", params::Print(filters)},
                {"kernel", TupleOf(w.kernel)},
                {"stride", TupleOf(w.stride)}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  kwargs.insert(kwargs.end(), {{"dilate", TupleOf(w.dilation)},
                               {"num_group", params::Print(node.Int("group", 1))},
                               {"no_bias", node.has(2) ? "False" : "True"}});
  node.Out(op, inputs, kwargs, std::move(arguments));
}

void Conv(ImportNode& node) {
  const Windows w = WindowsOf(node, KernelOf(node));
  std::vector<int64_t> pad = w.begin;
  if (!w.symmetric()) pad.insert(pad.end(), w.end.begin(), w.end.end());
  ConvBy(node, "Convolution", w, node.shape(1)[0], {{"pad", TupleOf(pad)}});
}

// The scale of the bilinear UpSampling that a transposed convolution is, of every channel by its
// own kernel; 0: it is another.
int64_t ScaleOfUpSampling(const ImportNode& node, const Windows& w) {
  const int64_t scale = w.stride[0], kernel = 2 * scale - scale % 2, pad = scale / 2,
                channels = node.shape(0)[1];
  const bool fits = node.ndim() == 4 && node.is_array(1) && scale > 1 && w.stride[1] == scale &&
                    node.array(1).dims == std::vector<int64_t>{channels, 1, kernel, kernel} &&
                    node.Int("group", 1) == channels && !node.has(2) &&
                    w.begin == std::vector<int64_t>{pad, pad} && w.symmetric() &&
                    w.dilation == std::vector<int64_t>{1, 1} && !node.has("output_padding");
  return fits ? scale : 0;
}

// Of a transposed convolution whose size is asked for: the cells to cut off before and after, below
// 0 to add, along each axis.
struct Cuts {
  std::vector<int64_t> begin, end;
};
Cuts CutsOf(const ImportNode& node, const Windows& w, const std::vector<int64_t>& more) {
  Cuts cuts{w.begin, w.end};
  const std::string automatic = node.Word("auto_pad", "NOTSET");
  std::vector<int64_t> wanted = node.Ints("output_shape");
  if (wanted.size() == w.axes() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != w.axes())
    Throw(ErrorKind::kData, "{}: output_shape does not have a length for each axis",
          node.Describe());
  const bool same = automatic.starts_with("SAME");
  if (wanted.empty() && !same) {
    if (automatic == "VALID") cuts.begin = cuts.end = std::vector<int64_t>(w.axes(), 0);
    return cuts;
  }
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t length = LengthOf(node, axis),
                  whole = (length - 1) * w.stride[axis] + more[axis] + w.Span(axis),
                  total = whole - (wanted.empty() ? length * w.stride[axis] : wanted[axis]);
    const int64_t half = total < 0 ? 0 : total / 2;
    cuts.begin[axis] = automatic == "SAME_UPPER" || total < 0 ? half : total - half;
    cuts.end[axis] = total - cuts.begin[axis];
  }
  return cuts;
}

void ConvTranspose(ImportNode& node) {
  Windows w = WindowsOf(node, KernelOf(node), false);
  const TShape weight = node.shape(1);
  const bool sized = node.has("output_shape") || node.Word("auto_pad", "NOTSET") != "NOTSET";
  if (const int64_t scale = sized ? 0 : ScaleOfUpSampling(node, w); scale > 0) {
    node.NameAfter(node.in(1).array);
    return node.Out("UpSampling", {node.ref(0)},
                    {{"scale", params::Print(scale)},
                     {"sample_type", "bilinear"},
                     {"num_filter", params::Print(weight[0])},
                     {"num_args", "2"}},
                    {node.ArgumentOf(1, "weight")});
  }
  std::vector<int64_t> adj = node.Ints("output_padding", std::vector<int64_t>(w.axes(), 0));
  const bool small =
      std::ranges::all_of(adj, [](int64_t more) { return more >= 0 && more < 1 << 20; });
  if (adj.size() != w.axes() || !small)
    Throw(ErrorKind::kData, "{}: output_padding does not have a length for each axis",
          node.Describe());
  // Cells cut off on the near side; adj fewer are on the far side. What else the far side has too
  // many is sliced off.
  const Cuts cuts = CutsOf(node, w, adj);
  bool sliced = false;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    adj[axis] += cuts.begin[axis] - cuts.end[axis];
    if (adj[axis] >= w.stride[axis])
      node.Refuse("its output is {} cells longer than its windows reach", adj[axis]);
    sliced = sliced || adj[axis] < 0;
  }
  const int64_t groups = node.Int("group", 1);
  if (groups < 1 || weight[1] > TShape::kMaxSize / groups)
    Throw(ErrorKind::kData, "{}: its group is {}", node.Describe(), groups);
  std::vector<int64_t> far = adj;
  for (int64_t& more : far) more = std::max<int64_t>(0, more);
  ConvBy(node, "Deconvolution", w, weight[1] * groups,
         {{"pad", TupleOf(cuts.begin)}, {"adj", TupleOf(far)}});
  if (!sliced) return;
  std::string result = node.state().values[node.output()].reference;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int at = 2 + static_cast<int>(axis);
    const int64_t length = FixedLength(node, result, at);
    result = Sliced(node, result, at, 0, length + std::min<int64_t>(0, adj[axis]));
  }
  node.OutIs(result);
}

// --- matrix products ---

Tensor Scaled(Tensor tensor, float factor) {
  if (factor == 1) return tensor;
  std::vector<float> values = tensor.ToFloats();
  for (float& value : values) value *= factor;
  return Tensor::Floats(tensor.dims, values);
}

// Whether the third input of Gemm is one number for every column or one for all.
bool IsBias(const ImportNode& node, int64_t columns) {
  if (!node.is_array(2)) return false;
  const Tensor& c = node.array(2);
  return c.Size() == 1 || (c.Size() == columns && c.dims.back() == columns);
}

// alpha A B + beta C, the first two as FullyConnected where B is an array.
std::string ProductOf(ImportNode& node, bool bias, bool is_output) {
  std::string a = node.ref(0);
  if (node.Int("transA", 0) != 0) a = node.Add("transpose", {a}, {{"axes", "(1, 0)"}});
  const float alpha = node.Float("alpha", 1);
  const bool transposed = node.Int("transB", 0) != 0;
  if (!node.is_array(1)) {
    const std::string product =
        node.Add("dot", {a, node.ref(1)}, {{"transpose_b", transposed ? "True" : "False"}});
    return alpha == 1 ? product : WithNumber(node, "_mul_scalar", product, alpha);
  }
  const Tensor& b = WeightOf(node, 1);
  const std::string how =
      format("{}{}", transposed ? "" : "transposed", alpha == 1 ? "" : format(" times {}", alpha));
  std::vector<ImportNode::Argument> arguments{
      alpha == 1 && transposed
          ? node.ArgumentOf(1, "weight")
          : node.ArgumentOf(1, "weight", Scaled(transposed ? b : Transposed(b), alpha), how)};
  const int64_t columns = b.dims[transposed ? 0 : 1];
  if (bias) {
    const std::vector<float> c = node.array(2).ToFloats();
    std::vector<float> numbers(static_cast<size_t>(columns));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = node.Float("beta", 1) * c[c.size() == 1 ? 0 : i];
    arguments.push_back({"bias", Tensor::Floats({columns}, numbers), ""});
  }
  node.NameAfter(node.in(1).array);
  const Kwargs params{{"num_hidden", params::Print(columns)}, {"no_bias", bias ? "False" : "True"}};
  if (!is_output) return node.Add("FullyConnected", {a}, params, std::move(arguments));
  node.Out("FullyConnected", {a}, params, std::move(arguments));
  return "";
}

void Gemm(ImportNode& node) {
  if (node.ndim(0) != 2 || node.ndim(1) != 2) node.Refuse("its factors are no matrices");
  const int64_t columns = node.shape(1)[node.Int("transB", 0) != 0 ? 0 : 1];
  const bool weight = node.is_array(1), bias = weight && node.has(2) && IsBias(node, columns);
  if (weight && (bias || !node.has(2))) {
    ProductOf(node, bias, true);
    return;
  }
  const std::string product = ProductOf(node, false, false);
  if (!node.has(2)) return node.OutIs(product);
  if (node.ndim(2) > 2) node.Refuse("its third input {} is no matrix", node.shape(2).ToString());
  std::string c = node.OfRank(2, 2);
  const float beta = node.Float("beta", 1);
  if (beta != 1) c = WithNumber(node, "_mul_scalar", c, beta);
  node.Out("broadcast_add", {product, c});
}

void Dropout(ImportNode& node) {
  const float ratio = node.NumberOfInputOr(1, "ratio").value_or(0.5f);
  if (!(ratio >= 0 && ratio < 1)) node.Refuse("its ratio is {}", ratio);
  if (node.has(2) && !node.is_array(2)) node.Refuse("its training mode depends on the data");
  if (node.has(2) && ratio > 0 && node.NumberOfInputOr(2, "").value_or(0) != 0)
    node.Refuse("it is in training mode; export the model in evaluation mode");
  node.Out("Dropout", {node.ref(0)}, {{"p", params::Print(ratio)}});
}

void Identity(ImportNode& node) {
  const int layer = node.in(0).layer;
  const bool only = node.OnlyReader(0);
  const std::string reference = node.ref(0);
  node.OutIs(reference);
  // A bias or a loss may still change the layer.
  if (only) node.state().values[node.output()].layer = layer;
}

// Everything is float32 here: truth values are 0 and 1, integers are whole numbers.
void Cast(ImportNode& node) {
  switch (static_cast<ElementType>(node.Int("to", 0))) {
    case ElementType::kFloat:
    case ElementType::kFloat16:
    case ElementType::kDouble:
    case ElementType::kBfloat16:
      return Identity(node);
    case ElementType::kBool:
      return node.Out("_not_equal_scalar", {node.ref(0)}, {{"scalar", "0"}});
    default:
      if (!IsInteger(static_cast<ElementType>(node.Int("to", 0))))
        node.Refuse("type {} has no equivalent", node.Int("to", 0));
      if (node.is_integers(0) || node.is_truth(0)) return Identity(node);
      return node.Out("trunc", {node.ref(0)});
  }
}

}  // namespace

std::vector<ImportEntry> LayerImports() {
  return {
      {"Conv", Conv},       {"ConvTranspose", ConvTranspose}, {"Gemm", Gemm},
      {"Dropout", Dropout}, {"Identity", Identity},           {"Cast", Cast},
  };
}

}  // namespace mxtrain::onnx
