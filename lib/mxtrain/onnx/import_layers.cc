// SPDX-License-Identifier: Apache-2.0
// Convolution, matrix products, pooling, resizing, dropout.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

std::string Tuple(const std::vector<int64_t>& values) {
  return TShape(std::span<const int64_t>(values)).ToTuple();
}
std::string Number(double value) {
  return params::Print(value);
}

// The windows of a convolution or pooling over sequences, images or volumes.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> begin, end;  // padding

  size_t axes() const { return kernel.size(); }
  bool symmetric() const { return begin == end; }
  // Cells of an axis of the images that a window spans.
  int64_t Span(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

int64_t LengthOf(const ImportNode& node, size_t axis) {
  return node.shape(0)[2 + static_cast<int>(axis)];
}

Windows WindowsOf(const ImportNode& node, std::vector<int64_t> kernel) {
  if (node.ndim() < 3 || node.ndim() > 5)
    node.Refuse("its data {} are not sequences [N, C, W], images [N, C, H, W] or volumes",
                node.shape(0).ToString());
  const size_t axes = static_cast<size_t>(node.ndim()) - 2;
  const std::vector<int64_t> ones(axes, 1), zeros(2 * axes, 0);
  Windows w{std::move(kernel), node.Ints("strides", ones), node.Ints("dilations", ones), {}, {}};
  const std::vector<int64_t> pads = node.Ints("pads", zeros);
  const auto good = [](const std::vector<int64_t>& values, size_t count, int64_t least) {
    return values.size() == count &&
           std::ranges::all_of(values, [least](int64_t v) { return v >= least && v < 1 << 20; });
  };
  if (!good(w.kernel, axes, 1) || !good(w.stride, axes, 1) || !good(w.dilation, axes, 1) ||
      !good(pads, 2 * axes, 0)) {
    Throw(ErrorKind::kData,
          "{}: kernel_shape, strides, dilations or pads do not describe windows of {} axes",
          node.Describe(), axes);
  }
  const auto middle = pads.begin() + static_cast<int64_t>(axes);
  w.begin.assign(pads.begin(), middle);
  w.end.assign(middle, pads.end());
  const std::string automatic = node.Word("auto_pad", "NOTSET");
  if (automatic == "VALID") w.begin = w.end = std::vector<int64_t>(axes, 0);
  if (automatic.starts_with("SAME")) {
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t in = LengthOf(node, axis);
      const int64_t out = (in + w.stride[axis] - 1) / w.stride[axis];
      const int64_t needed = (out - 1) * w.stride[axis] + w.Span(axis) - in;
      // One cell that no window needs is at the end whichever way it is counted.
      if (needed < -1)
        node.Refuse("auto_pad = {} has no equivalent where windows do not need {} cells of an axis",
                    automatic, -needed);
      const int64_t whole = std::max<int64_t>(0, needed);
      const int64_t less = whole / 2, more = whole - less;
      w.begin[axis] = automatic == "SAME_LOWER" ? more : less;
      w.end[axis] = automatic == "SAME_LOWER" ? less : more;
    }
  }
  return w;
}

// The data with the padding added, which is then none.
std::string Padded(ImportNode& node, Windows* w, double value) {
  std::vector<int64_t> widths(4, 0);
  for (size_t axis = 0; axis < w->axes(); ++axis)
    widths.insert(widths.end(), {w->begin[axis], w->end[axis]});
  std::string text;
  for (const int64_t width : widths) text += (text.empty() ? "(" : ", ") + params::Print(width);
  const std::string padded = node.Add(
      "Pad", {node.ref(0)},
      {{"mode", "constant"}, {"pad_width", text + ")"}, {"constant_value", Number(value)}});
  w->begin = w->end = std::vector<int64_t>(w->axes(), 0);
  return padded;
}

// An array of the file that has elements: of none, an axis may be of any length.
const Tensor& WeightOf(const ImportNode& node, int i) {
  const Tensor& weight = node.array(i);
  if (weight.Size() == 0) node.Refuse("its weight {} has no elements", ShapeOf(weight).ToString());
  return weight;
}

// Of the weight of a convolution.
std::vector<int64_t> KernelOf(const ImportNode& node) {
  const Tensor& weight = WeightOf(node, 1);
  if (static_cast<int>(weight.dims.size()) != node.ndim() || node.ndim() < 3)
    node.Refuse("its weight has {} axes and its data have {}", weight.dims.size(), node.ndim());
  return {weight.dims.begin() + 2, weight.dims.end()};
}

// A convolution or a transposed one.
void ConvBy(ImportNode& node, const std::string& op, const Windows& w, int64_t filters,
            Kwargs more) {
  std::vector<ImportNode::Argument> arguments{node.ArgumentOf(1, "weight")};
  if (node.has(2)) arguments.push_back(node.ArgumentOf(2, "bias"));
  node.NameAfter(node.in(1).array);
  Kwargs kwargs{{"num_filter", params::Print(filters)},
                {"kernel", Tuple(w.kernel)},
                {"stride", Tuple(w.stride)}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  kwargs.insert(kwargs.end(), {{"dilate", Tuple(w.dilation)},
                               {"num_group", params::Print(node.Int("group", 1))},
                               {"no_bias", node.has(2) ? "False" : "True"}});
  node.Out(op, {node.ref(0)}, kwargs, std::move(arguments));
}

void Conv(ImportNode& node) {
  const Windows w = WindowsOf(node, KernelOf(node));
  std::vector<int64_t> pad = w.begin;
  if (!w.symmetric()) pad.insert(pad.end(), w.end.begin(), w.end.end());
  ConvBy(node, "Convolution", w, node.array(1).dims[0], {{"pad", Tuple(pad)}});
}

// The scale of the bilinear UpSampling that a transposed convolution is, of every channel by its
// own kernel; 0: it is another.
int64_t ScaleOfUpSampling(const ImportNode& node, const Windows& w) {
  const int64_t scale = w.stride[0], kernel = 2 * scale - scale % 2, pad = scale / 2,
                channels = node.shape(0)[1];
  const bool fits = node.ndim() == 4 && scale > 1 && w.stride[1] == scale &&
                    node.array(1).dims == std::vector<int64_t>{channels, 1, kernel, kernel} &&
                    node.Int("group", 1) == channels && !node.has(2) &&
                    w.begin == std::vector<int64_t>{pad, pad} && w.symmetric() &&
                    w.dilation == std::vector<int64_t>{1, 1} && !node.has("output_padding");
  return fits ? scale : 0;
}

void ConvTranspose(ImportNode& node) {
  if (node.Word("auto_pad", "NOTSET") != "NOTSET") node.Refuse("auto_pad has no equivalent");
  if (node.has("output_shape")) node.Refuse("output_shape has no equivalent");
  const Windows w = WindowsOf(node, KernelOf(node));
  const Tensor& weight = node.array(1);
  if (const int64_t scale = ScaleOfUpSampling(node, w); scale > 0) {
    node.NameAfter(node.in(1).array);
    return node.Out("UpSampling", {node.ref(0)},
                    {{"scale", params::Print(scale)},
                     {"sample_type", "bilinear"},
                     {"num_filter", params::Print(weight.dims[0])},
                     {"num_args", "2"}},
                    {node.ArgumentOf(1, "weight")});
  }
  // Cells cut off on the near side; adj fewer are on the far side.
  std::vector<int64_t> adj = node.Ints("output_padding", std::vector<int64_t>(w.axes(), 0));
  const bool small =
      std::ranges::all_of(adj, [](int64_t more) { return more >= 0 && more < 1 << 20; });
  if (adj.size() != w.axes() || !small)
    Throw(ErrorKind::kData, "{}: output_padding does not have a length for each axis",
          node.Describe());
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    adj[axis] += w.begin[axis] - w.end[axis];
    if (adj[axis] < 0 || adj[axis] >= w.stride[axis])
      node.Refuse("pads and output_padding that differ by {} have no equivalent", adj[axis]);
  }
  const int64_t groups = node.Int("group", 1);
  if (groups < 1 || weight.dims[1] > TShape::kMaxSize / groups)
    Throw(ErrorKind::kData, "{}: its group is {}", node.Describe(), groups);
  ConvBy(node, "Deconvolution", w, weight.dims[1] * groups,
         {{"pad", Tuple(w.begin)}, {"adj", Tuple(adj)}});
}

// --- matrix products ---

Tensor Transposed(const Tensor& matrix) {
  const std::vector<float> values = matrix.ToFloats();
  const auto rows = static_cast<size_t>(matrix.dims[0]),
             columns = static_cast<size_t>(matrix.dims[1]);
  std::vector<float> result(values.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) result[j * rows + i] = values[i * columns + j];
  }
  return Tensor::Floats({matrix.dims[1], matrix.dims[0]}, result);
}
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
    return alpha == 1 ? product : node.Add("_mul_scalar", {product}, {{"scalar", Number(alpha)}});
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
  if (beta != 1) c = node.Add("_mul_scalar", {c}, {{"scalar", Number(beta)}});
  node.Out("broadcast_add", {product, c});
}

// Arrays of matrices, all axes before the last two merged.
std::string Merged(ImportNode& node, int i) {
  const Shapes& from = node.in(i).shape;
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    const TShape& s = from[batch];
    to[batch] = TShape{s.Product(0, s.ndim() - 2), s[s.ndim() - 2], s[s.ndim() - 1]};
  }
  return node.Reshape(node.ref(i), to);
}

void MatMul(ImportNode& node) {
  const int ndim = node.ndim(0);
  const bool rows = ndim > 2 || (ndim == 2 && !node.is_array(0));
  if (node.is_array(1) && node.array(1).dims.size() == 2 && rows) {
    const Tensor& b = WeightOf(node, 1);
    node.NameAfter(node.in(1).array);
    return node.Out("FullyConnected", {node.ref(0)},
                    {{"num_hidden", params::Print(b.dims[1])},
                     {"no_bias", "True"},
                     {"flatten", ndim == 2 ? "True" : "False"}},
                    {node.ArgumentOf(1, "weight", Transposed(b), "transposed")});
  }
  if (node.is_array(0) && ndim == 2 && node.ndim(1) > 2) {
    // A matrix times many: the transposed factors the other way round.
    const Tensor& a = WeightOf(node, 0);
    const int last = node.ndim(1) - 1;
    const Kwargs swapped{{"dim1", params::Print(last - 1)}, {"dim2", params::Print(last)}};
    const std::string columns = node.Add("SwapAxis", {node.ref(1)}, swapped);
    const std::string product = node.Add(
        "FullyConnected", {columns},
        {{"num_hidden", params::Print(a.dims[0])}, {"no_bias", "True"}, {"flatten", "False"}},
        {node.ArgumentOf(0, "weight")});
    return node.Out("SwapAxis", {product}, swapped);
  }
  if (ndim != node.ndim(1) || ndim < 2)
    node.Refuse("a product of arrays {} and {} has no equivalent", node.shape(0).ToString(),
                node.shape(1).ToString());
  if (ndim == 2) return node.Out("dot", {node.ref(0), node.ref(1)});
  for (int i = 0; i < ndim - 2; ++i) {
    if (node.shape(0)[i] != node.shape(1)[i] || node.shape(0, 1)[i] != node.shape(1, 1)[i])
      node.Refuse("matrices are repeated: {} times {}", node.shape(0).ToString(),
                  node.shape(1).ToString());
  }
  if (ndim == 3) return node.Out("batch_dot", {node.ref(0), node.ref(1)});
  const std::string product = node.Add("batch_dot", {Merged(node, 0), Merged(node, 1)});
  Shapes to = node.in(0).shape;
  for (size_t batch = 0; batch < 2; ++batch)
    to[batch][ndim - 1] = node.in(1).shape[batch][ndim - 1];
  // Splitting the first axis: all lengths but that of the batch are known.
  std::vector<int64_t> codes(to[0].begin(), to[0].end());
  for (int i = 0; i < ndim; ++i) {
    if (to[0][i] != to[1][i]) codes[static_cast<size_t>(i)] = -1;
  }
  if (std::ranges::count(codes, -1) > 1)
    node.Refuse("several axes of its output depend on the size of the batch");
  node.Out("Reshape", {product}, {{"shape", Tuple(codes)}});
}

// --- Einsum ---

// An equation of two factors, such as "bhid,bhjd->bhij", a letter per axis.
struct Equation {
  std::string factors[2], result;
};

Equation EquationOf(const ImportNode& node) {
  std::string text;
  for (const char c : node.Word("equation", "")) {
    if (c != ' ') text += c;
  }
  const size_t comma = text.find(','), arrow = text.find("->");
  if (node.num_inputs() != 2 || comma == std::string::npos || arrow == std::string::npos ||
      arrow < comma || text.find(',', comma + 1) != std::string::npos)
    node.Refuse("its equation '{}' is not one of two factors and a result", text);
  Equation e{{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)},
             text.substr(arrow + 2)};
  for (const std::string& term : {e.factors[0], e.factors[1], e.result}) {
    std::string sorted = term;
    std::ranges::sort(sorted);
    const bool letters = std::ranges::all_of(
        term, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (!letters || std::ranges::adjacent_find(sorted) != sorted.end())
      node.Refuse("its equation '{}' has something other than different letters in a term", text);
  }
  for (int i = 0; i < 2; ++i) {
    if (static_cast<int>(e.factors[i].size()) != node.ndim(i))
      Throw(ErrorKind::kData, "{}: '{}' stands for {}", node.Describe(), e.factors[i],
            node.shape(i).ToString());
  }
  for (const char c : e.result) {
    if (e.factors[0].find(c) == std::string::npos && e.factors[1].find(c) == std::string::npos)
      Throw(ErrorKind::kData, "{}: no factor has the axis {}", node.Describe(), c);
  }
  return e;
}

// Letters of `of` that are in all of `in` and in none of `out`.
std::string Letters(const std::string& of, const std::vector<std::string>& in,
                    const std::vector<std::string>& out) {
  std::string letters;
  for (const char c : of) {
    const auto has = [c](const std::string& term) { return term.find(c) != std::string::npos; };
    if (std::ranges::all_of(in, has) && std::ranges::none_of(out, has)) letters += c;
  }
  return letters;
}

std::string Permuted(ImportNode& node, const std::string& value, const std::string& from,
                     const std::string& to) {
  if (from == to) return value;
  std::vector<int64_t> order;
  for (const char c : to) order.push_back(static_cast<int64_t>(from.find(c)));
  return node.Add("transpose", {value}, {{"axes", Tuple(order)}});
}

// A batch of matrix products: axes of both factors and the result are the batch, those of both
// factors alone are summed over.
void Einsum(ImportNode& node) {
  const Equation e = EquationOf(node);
  const std::string &a = e.factors[0], &b = e.factors[1], &y = e.result;
  const std::string batch = Letters(a, {b, y}, {}), summed = Letters(a, {b}, {y}),
                    rows = Letters(a, {y}, {b}), columns = Letters(b, {y}, {a});
  if (a.size() != batch.size() + summed.size() + rows.size() ||
      b.size() != batch.size() + summed.size() + columns.size())
    node.Refuse("an axis of one factor is not in the result");
  if (y.empty() || y.size() > static_cast<size_t>(TShape::kMaxDims))
    node.Refuse("its result has {} axes", y.size());
  std::map<char, std::pair<int64_t, int64_t>> lengths;  // for two sizes of the batch
  for (int i = 0; i < 2; ++i) {
    for (int axis = 0; axis < node.ndim(i); ++axis) {
      const std::pair<int64_t, int64_t> length{node.shape(i)[axis], node.shape(i, 1)[axis]};
      const char c = e.factors[i][static_cast<size_t>(axis)];
      if (!lengths.try_emplace(c, length).second && lengths[c] != length)
        node.Refuse("the axis {} has two lengths", c);
    }
  }
  // A shape with an axis for each text, whose length is the product of those of its letters.
  const auto shape_of = [&](const std::vector<std::string>& axes) {
    Shapes shapes{TShape::OfRank(static_cast<int>(axes.size())),
                  TShape::OfRank(static_cast<int>(axes.size()))};
    for (size_t i = 0; i < axes.size(); ++i) {
      int64_t first = 1, second = 1;
      for (const char c : axes[i]) {
        first *= lengths[c].first;
        second *= lengths[c].second;
      }
      shapes[0][static_cast<int>(i)] = first;
      shapes[1][static_cast<int>(i)] = second;
    }
    return shapes;
  };
  const std::string left = node.Reshape(Permuted(node, node.ref(0), a, batch + rows + summed),
                                        shape_of({batch, rows, summed})),
                    right = node.Reshape(Permuted(node, node.ref(1), b, batch + summed + columns),
                                         shape_of({batch, summed, columns}));
  const std::string product = node.Add("batch_dot", {left, right});
  std::string axes = batch;
  axes.append(rows).append(columns);
  std::vector<std::string> apart;
  for (const char c : axes) apart.emplace_back(1, c);
  const std::string whole = node.Reshape(product, shape_of(apart));
  node.OutIs(Permuted(node, whole, axes, y));
}

// --- pooling ---

std::vector<int64_t> OutputOf(const ImportNode& node, const Windows& w) {
  std::vector<int64_t> out;
  const bool up = node.Int("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t in = LengthOf(node, axis),
                  spare = in + w.begin[axis] + w.end[axis] - w.Span(axis);
    if (spare < 0) node.Refuse("its window is larger than its data");
    int64_t count = (spare + (up ? w.stride[axis] - 1 : 0)) / w.stride[axis] + 1;
    // A last window that would begin behind the data is dropped.
    if (up && (count - 1) * w.stride[axis] >= in + w.begin[axis]) --count;
    out.push_back(count);
  }
  return out;
}

// The largest elements of windows with gaps: along one axis after the other, of slices that are
// moved against each other.
void DilatedMax(ImportNode& node, Windows w, const std::vector<int64_t>& out) {
  constexpr int64_t kMost = 64;  // layers
  int64_t layers = 0;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    layers += 2 * std::min(w.kernel[axis], kMost);
    // What ceil_mode adds at the end.
    w.end[axis] = std::max(w.end[axis], (out[axis] - 1) * w.stride[axis] + w.Span(axis) -
                                            LengthOf(node, axis) - w.begin[axis]);
  }
  if (layers > kMost) node.Refuse("its windows are dilated and large");
  const auto kernel = w.kernel, stride = w.stride, dilation = w.dilation;
  const auto is_padded = [](int64_t width) { return width > 0; };
  const bool padded =
      std::ranges::any_of(w.begin, is_padded) || std::ranges::any_of(w.end, is_padded);
  std::string data = padded ? Padded(node, &w, std::numeric_limits<float>::lowest()) : node.ref(0);
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    std::string largest;
    for (int64_t i = 0; i < kernel[axis]; ++i) {
      const int64_t begin = i * dilation[axis];
      const auto along = [axis](int64_t number) {
        std::string text = "(None, None, ";
        for (size_t before = 0; before < axis; ++before) text += "None, ";
        return format("{}{})", text, number);
      };
      const std::string part = node.Add("slice", {data},
                                        {{"begin", along(begin)},
                                         {"end", along(begin + (out[axis] - 1) * stride[axis] + 1)},
                                         {"step", along(stride[axis])}});
      largest = largest.empty() ? part : node.Add("_maximum", {largest, part});
    }
    data = largest;
  }
  node.OutIs(data);
}

void PoolBy(ImportNode& node, const std::string& type, Kwargs more) {
  Windows w = WindowsOf(node, node.Ints("kernel_shape"));
  const std::vector<int64_t> out = OutputOf(node, w);
  if (std::ranges::any_of(w.dilation, [](int64_t d) { return d != 1; })) {
    if (type != "max") node.Refuse("dilated windows have an equivalent for a maximum alone");
    return DilatedMax(node, std::move(w), out);
  }
  // "full" adds what is needed at the far edge, which does not count; ONNX's padding at the end
  // may say the same.
  const bool counts = type == "avg" && node.Int("count_include_pad", 0) != 0;
  bool plain = w.symmetric() || !counts, full = false;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t spare = LengthOf(node, axis) + 2 * w.begin[axis] - w.kernel[axis];
    plain = plain && spare >= 0 && w.begin[axis] < w.kernel[axis];
    if (!plain) break;
    const int64_t down = spare / w.stride[axis] + 1,
                  up = (spare + w.stride[axis] - 1) / w.stride[axis] + 1;
    full = full || out[axis] != down;
    plain = out[axis] == down || out[axis] == up;
  }
  // All axes are rounded the same way.
  for (size_t axis = 0; axis < w.axes() && plain && full; ++axis) {
    const int64_t spare = LengthOf(node, axis) + 2 * w.begin[axis] - w.kernel[axis];
    plain = out[axis] == (spare + w.stride[axis] - 1) / w.stride[axis] + 1;
  }
  std::string data;
  if (plain) {
    data = node.ref(0);
  } else {
    if (type == "avg" && !counts) node.Refuse("its padding has no equivalent");
    if (node.Int("ceil_mode", 0) != 0) node.Refuse("ceil_mode with this padding has no equivalent");
    data = Padded(node, &w, type == "max" ? std::numeric_limits<float>::lowest() : 0);
  }
  Kwargs kwargs{{"pool_type", type},
                {"kernel", Tuple(w.kernel)},
                {"stride", Tuple(w.stride)},
                {"pad", Tuple(w.begin)},
                {"pooling_convention", plain && full ? "full" : "valid"}};
  if (type == "avg") kwargs.emplace_back("count_include_pad", counts ? "True" : "False");
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  node.Out("Pooling", {data}, kwargs);
}

void GlobalPoolBy(ImportNode& node, const std::string& type, const Kwargs& more) {
  if (node.ndim() < 3 || node.ndim() > 5)
    node.Refuse("its data {} are not sequences, images or volumes", node.shape(0).ToString());
  Kwargs kwargs{{"pool_type", type},
                {"kernel", Tuple(std::vector<int64_t>(static_cast<size_t>(node.ndim()) - 2, 1))},
                {"global_pool", "True"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  node.Out("Pooling", {node.ref(0)}, kwargs);
}

Kwargs PowerOf(const ImportNode& node) {
  return {{"p_value", params::Print(node.Int("p", 2))}};
}

// --- resizing ---

// Height and width of the output; `whole`: it is the size of the input times the scales, not less.
std::vector<int64_t> SizeOfOutput(const ImportNode& node, int scales_at, bool* whole) {
  *whole = true;
  if (node.has(3)) {
    const ImportValue& sizes = node.in(3);
    if (!sizes.is_constant()) node.Refuse("the size of its output depends on the data");
    const std::vector<int64_t> first = sizes.constant[0]->ToInts(),
                               second = sizes.constant[1]->ToInts();
    if (first.size() != 4 || second.size() != 4)
      node.Refuse("it does not give the size of its output along every axis");
    // A batch of fixed size may be written into the file.
    const bool batch =
        first[0] == node.shape(0)[0] &&
        (second[0] == node.shape(0, 1)[0] || (node.fixed_batch() && second[0] == node.shape(0)[0]));
    if (!batch || first[1] != node.shape(0)[1] || second[1] != first[1] || second[2] != first[2] ||
        second[3] != first[3])
      node.Refuse("it resizes {} to {}; only images can be resized, to one size",
                  node.shape(0).ToString(), Tuple(first));
    return {first[2], first[3]};
  }
  const std::vector<float> scales = node.array(scales_at).ToFloats();
  if (scales.size() != 4 || scales[0] != 1 || scales[1] != 1)
    node.Refuse("its scales are not 1, 1 and those of height and width");
  std::vector<int64_t> size;
  for (const int axis : {2, 3}) {
    const float length =
        scales[static_cast<size_t>(axis)] * static_cast<float>(node.shape(0)[axis]);
    if (!(length >= 1 && length <= 1 << 20)) node.Refuse("the size of its output is {}", length);
    *whole = *whole && length == std::floor(length);
    size.push_back(static_cast<int64_t>(std::floor(length)));
  }
  return size;
}

// Resize and, before opset 10, Upsample.
void Resize(ImportNode& node) {
  if (node.ndim() != 4) node.Refuse("its data {} are not images", node.shape(0).ToString());
  if (node.shape(0)[2] < 1 || node.shape(0)[3] < 1)
    node.Refuse("its data {} have no elements", node.shape(0).ToString());
  if (node.has("axes")) node.Refuse("axes have no equivalent");
  if (node.Word("keep_aspect_ratio_policy", "stretch") != "stretch")
    node.Refuse("keep_aspect_ratio_policy has no equivalent");
  const bool upsample = node.op() == "Upsample" || node.opset() == 10;
  const std::string mode = node.Word("mode", "nearest");
  bool scaled = false;
  const std::vector<int64_t> size = SizeOfOutput(node, upsample ? 1 : 2, &scaled);
  const TShape& in = node.shape(0);
  if (size[0] < 1 || size[1] < 1 || size[0] > 1 << 20 || size[1] > 1 << 20)
    node.Refuse("the size of its output is {} x {}", size[0], size[1]);
  if (!scaled) node.Refuse("its scales do not give whole lengths");
  const std::string place =
      node.Word("coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel");
  if (mode == "nearest") {
    const int64_t scale = size[0] / in[2];
    const bool whole = size[0] == scale * in[2] && size[1] == scale * in[3];
    const std::string rounding = node.Word("nearest_mode", "round_prefer_floor");
    // Of a whole factor every element is repeated, unless positions are rounded up.
    const bool repeats = upsample || (place == "asymmetric" && rounding == "floor") ||
                         (place == "half_pixel" && rounding.starts_with("round"));
    if (!whole || scale < 1 || !repeats)
      node.Refuse("nearest resizing has an equivalent for whole factors only (UpSampling)");
    return node.Out(
        "UpSampling", {node.ref(0)},
        {{"scale", params::Print(scale)}, {"sample_type", "nearest"}, {"num_args", "1"}});
  }
  const bool corners = place == "align_corners";
  const bool half = place == "half_pixel" || place == "pytorch_half_pixel";
  if (mode != "linear" || !(corners || half) || node.Int("antialias", 0) != 0)
    node.Refuse("mode '{}' with '{}' has no equivalent", mode, place);
  // Its position is the first one of all, here the middle.
  for (int axis = 2; axis < 4 && place == "pytorch_half_pixel"; ++axis) {
    if (size[static_cast<size_t>(axis - 2)] == 1 && in[axis] > 1)
      node.Refuse("'{}' has no equivalent for an output of one row or column", place);
  }
  node.Out("BilinearResize2D", {node.ref(0)},
           {{"height", params::Print(size[0])},
            {"width", params::Print(size[1])},
            {"align_corners", corners ? "True" : "False"}});
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
    case ElementType::kInt32:
    case ElementType::kInt64:
      return node.Out("trunc", {node.ref(0)});
    default:
      node.Refuse("type {} has no equivalent", node.Int("to", 0));
  }
}

}  // namespace

std::vector<ImportEntry> LayerImports() {
  return {
      {"Conv", Conv},
      {"ConvTranspose", ConvTranspose},
      {"Gemm", Gemm},
      {"MatMul", MatMul},
      {"Einsum", Einsum},
      {"MaxPool", [](ImportNode& node) { PoolBy(node, "max", {}); }},
      {"AveragePool", [](ImportNode& node) { PoolBy(node, "avg", {}); }},
      {"LpPool", [](ImportNode& node) { PoolBy(node, "lp", PowerOf(node)); }},
      {"GlobalMaxPool", [](ImportNode& node) { GlobalPoolBy(node, "max", {}); }},
      {"GlobalAveragePool", [](ImportNode& node) { GlobalPoolBy(node, "avg", {}); }},
      {"GlobalLpPool", [](ImportNode& node) { GlobalPoolBy(node, "lp", PowerOf(node)); }},
      {"Resize", Resize},
      {"Upsample", Resize},
      {"Dropout", Dropout},
      {"Identity", Identity},
      {"Cast", Cast},
  };
}

}  // namespace mxtrain::onnx
