// SPDX-License-Identifier: Apache-2.0
// Convolution, matrix products, pooling, resizing, and what a loss outputs.
#include <algorithm>
#include <functional>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/operator/window.h"

namespace mxtrain::onnx {
namespace {

// A parameter with a number for each axis of a window.
std::vector<int64_t> PerAxis(const ExportNode& node, std::string_view name) {
  const auto given = node.Get<TShape>(name);
  return {given.begin(), given.end()};
}

std::vector<int64_t> Joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

int64_t Product(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

// What `pad = same` means for the data of the net, before them and then after them. ONNX's word for
// it, SAME_UPPER, excludes dilation in onnxruntime and cuts the data where windows leave gaps.
std::vector<int64_t> SamePads(const ExportNode& node, const std::vector<int64_t>& window) {
  const std::vector<int64_t> stride = PerAxis(node, "stride");
  std::vector<int64_t> before, after;
  for (size_t axis = 0; axis < window.size(); ++axis) {
    const int64_t size = node.in_shape(0)[2 + static_cast<int>(axis)];
    if (size == TShape::kUnknown) node.Refuse("the size of its images is unknown");
    const Padding padding = SamePadding(size, window[axis], stride[axis]);
    before.push_back(padding.before);
    after.push_back(padding.after);
  }
  return Joined(before, after);
}

// Before the data, then after them.
std::vector<int64_t> ConvolutionPads(const ExportNode& node) {
  if (node.Is("pad", "same")) {
    std::vector<int64_t> window = PerAxis(node, "kernel");
    const std::vector<int64_t> dilate = PerAxis(node, "dilate");
    for (size_t axis = 0; axis < window.size(); ++axis)
      window[axis] = DilatedSize(window[axis], dilate[axis]);
    return SamePads(node, window);
  }
  const std::vector<int64_t> pad = PerAxis(node, "pad");
  return pad.size() == PerAxis(node, "kernel").size() ? Joined(pad, pad) : pad;
}

Attributes WindowAttributes(const ExportNode& node) {
  return {{"kernel_shape", PerAxis(node, "kernel")},
          {"strides", PerAxis(node, "stride")},
          {"dilations", PerAxis(node, "dilate")},
          {"pads", ConvolutionPads(node)}};
}

std::vector<std::string> DataAndWeights(const ExportNode& node) {
  std::vector<std::string> inputs{node.in(0), node.in(1)};
  if (!node.Get<bool>("no_bias")) inputs.push_back(node.in(2));
  return inputs;
}

void Convolution(ExportNode& node) {
  Attributes attributes = WindowAttributes(node);
  attributes["group"] = node.Get<int64_t>("num_group");
  node.Out("Conv", DataAndWeights(node), attributes);
}

void Deconvolution(ExportNode& node) {
  Attributes attributes = WindowAttributes(node);
  attributes["group"] = node.Get<int64_t>("num_group");
  attributes["output_padding"] = PerAxis(node, "adj");
  if (node.Get<TShape>("target_shape").ndim() > 0) {
    // Of the cells that are too many more than half are cut off on the near side.
    const std::vector<int64_t> kernel = PerAxis(node, "kernel"), stride = PerAxis(node, "stride"),
                               dilate = PerAxis(node, "dilate");
    std::vector<int64_t> near, far;
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int axis = 2 + static_cast<int>(i);
      const int64_t whole =
          stride[i] * (node.in_shape(0)[axis] - 1) + dilate[i] * (kernel[i] - 1) + 1;
      const int64_t more = whole - node.out_shape()[axis];
      near.push_back((more + 1) / 2);
      far.push_back(more - near.back());
    }
    attributes["pads"] = Joined(near, far);
    attributes.erase("output_padding");
  }
  node.Out("ConvTranspose", DataAndWeights(node), attributes);
}

// --- windows as columns: convolutions by weights of ones and zeros ---

// For each of `channels` the cells of a window: [channels cells, 1, kernel...].
std::string OneCellWeights(ExportNode& node, int64_t channels, const std::vector<int64_t>& kernel) {
  const int64_t cells = Product(kernel);
  std::vector<float> values(static_cast<size_t>(channels * cells * cells), 0.0f);
  for (int64_t row = 0; row < channels * cells; ++row)
    values[static_cast<size_t>(row * cells + row % cells)] = 1;
  return node.Floats(Joined({channels * cells, 1}, kernel), values);
}

void Im2col(ExportNode& node) {
  const int64_t channels = node.in_shape(0)[1];
  Attributes attributes = WindowAttributes(node);
  attributes["group"] = channels;
  const std::string weights = OneCellWeights(node, channels, PerAxis(node, "kernel"));
  const std::string cells = node.Add("Conv", {node.in(0), weights}, attributes);
  node.Out("Reshape", {cells, node.Ints({0, node.out_shape()[1], -1})});
}

void Col2im(ExportNode& node) {
  const TShape &out = node.out_shape(), &columns = node.in_shape(0);
  const std::vector<int64_t> kernel = PerAxis(node, "kernel"), stride = PerAxis(node, "stride"),
                             dilate = PerAxis(node, "dilate"), pad = PerAxis(node, "pad");
  std::vector<int64_t> grid{0, columns[1]}, rest;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t span = dilate[i] * (kernel[i] - 1) + 1;
    const int64_t spare = out[2 + static_cast<int>(i)] + 2 * pad[i] - span;
    grid.push_back(spare / stride[i] + 1);
    rest.push_back(spare % stride[i]);  // cells beyond the last window
  }
  const std::string cells = node.Add("Reshape", {node.in(0), node.Ints(grid)});
  node.Out("ConvTranspose", {cells, OneCellWeights(node, out[1], kernel)},
           {{"kernel_shape", kernel},
            {"strides", stride},
            {"dilations", dilate},
            {"pads", Joined(pad, pad)},
            {"output_padding", rest},
            {"group", out[1]}});
}

void FullyConnected(ExportNode& node) {
  const bool bias = !node.Get<bool>("no_bias"), flatten = node.Get<bool>("flatten");
  if (!flatten && node.ndim() != 2) {
    const std::string product =
        node.Add("MatMul", {node.in(0), node.Transpose(node.in(1), {1, 0})});
    return bias ? node.Out("Add", {product, node.in(2)}) : node.OutIs(product);
  }
  const std::string rows =
      node.ndim() == 2 ? node.in(0) : node.Add("Flatten", {node.in(0)}, {{"axis", int64_t{1}}});
  std::vector<std::string> inputs{rows, node.in(1)};
  if (bias) inputs.push_back(node.in(2));
  node.Out("Gemm", inputs, {{"transB", int64_t{1}}});
}

// --- pooling ---

// Along one axis; the last window may extend beyond the padding by `overhang`.
struct PooledAxis {
  int64_t in, out, kernel, stride, pad;
  int64_t overhang() const {
    return std::max<int64_t>(0, (out - 1) * stride + kernel - in - 2 * pad);
  }
};

void GlobalPooling(ExportNode& node) {
  if (node.Is("pool_type", "sum")) {
    std::vector<int64_t> axes(static_cast<size_t>(node.ndim()) - 2);
    std::iota(axes.begin(), axes.end(), 2);
    return node.OutIs(node.Reduce("ReduceSum", node.in(0), axes, true));
  }
  if (node.Is("pool_type", "lp"))
    return node.Out("GlobalLpPool", {node.in(0)}, {{"p", node.Get<int64_t>("p_value")}});
  node.Out(node.Is("pool_type", "max") ? "GlobalMaxPool" : "GlobalAveragePool", {node.in(0)});
}

void Pooling(ExportNode& node) {
  if (node.Get<bool>("global_pool")) return GlobalPooling(node);
  const bool same = node.Is("pad", "same");
  const std::vector<int64_t> kernel = PerAxis(node, "kernel"), stride = PerAxis(node, "stride"),
                             pad = same ? std::vector<int64_t>(kernel.size(), 0)
                                        : PerAxis(node, "pad");
  std::vector<int64_t> end = pad;
  bool beyond = false, too_wide = false;
  for (size_t axis = 0; axis < kernel.size() && !same; ++axis) {
    const int at = 2 + static_cast<int>(axis);
    const PooledAxis windows{node.in_shape(0)[at], node.out_shape()[at], kernel[axis], stride[axis],
                             pad[axis]};
    if (windows.in == TShape::kUnknown) node.Refuse("the size of its images is unknown");
    beyond = beyond || windows.overhang() > 0;
    end[axis] += windows.overhang();
    too_wide = too_wide || end[axis] >= kernel[axis];
    if ((windows.out - 1) * windows.stride - windows.pad >= windows.in)
      node.Refuse("a window has no element of the image");
  }
  std::string data = node.in(0);
  std::vector<int64_t> pads = same ? SamePads(node, kernel) : Joined(pad, end);
  const bool average = node.Is("pool_type", "avg");
  const bool count_pad =
      average && !node.Is("count_include_pad", "False") && !node.Is("count_include_pad", "false");
  // Padding that counts, unlike what lies beyond it, becomes part of the image. So does padding
  // that ONNX does not allow, if it cannot be told from zeros.
  if (count_pad && beyond) {
    const std::vector<int64_t> side = Joined({0, 0}, pad), none(pad.size(), 0);
    data = node.Add("Pad", {data, node.Ints(Joined(side, side))});
    for (size_t axis = 0; axis < pad.size(); ++axis) end[axis] -= pad[axis];
    pads = Joined(none, end);
  } else if (too_wide) {
    node.Refuse("its last windows begin in the padding");
  }
  Attributes attributes{{"kernel_shape", kernel}, {"strides", stride}, {"pads", pads}};
  if (node.Is("pool_type", "max")) return node.Out("MaxPool", {data}, attributes);
  if (node.Is("pool_type", "lp")) {
    attributes["p"] = node.Get<int64_t>("p_value");
    return node.Out("LpPool", {data}, attributes);
  }
  attributes["count_include_pad"] = int64_t{(count_pad && !beyond) || !average};
  if (average) return node.Out("AveragePool", {data}, attributes);
  const std::string mean = node.Add("AveragePool", {data}, attributes);
  node.Out("Mul", {mean, node.Scalar(static_cast<float>(Product(kernel)))});
}

// The weights of the means along an axis: [out, in], or transposed.
std::string MeansMatrix(ExportNode& node, int64_t in, int64_t out, bool transposed) {
  std::vector<float> values(static_cast<size_t>(in * out), 0.0f);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * in / out, last = ((i + 1) * in + out - 1) / out;
    for (int64_t j = first; j < last; ++j)
      values[static_cast<size_t>(transposed ? j * out + i : i * in + j)] =
          1.0f / static_cast<float>(last - first);
  }
  return transposed ? node.Floats({in, out}, values) : node.Floats({out, in}, values);
}

void AdaptiveAvgPooling(ExportNode& node) {
  const TShape &in = node.in_shape(0), &out = node.out_shape();
  if (out[2] == 1 && out[3] == 1) return node.Out("GlobalAveragePool", {node.in(0)});
  if (in[2] % out[2] == 0 && in[3] % out[3] == 0) {
    const std::vector<int64_t> window{in[2] / out[2], in[3] / out[3]};
    return node.Out("AveragePool", {node.in(0)}, {{"kernel_shape", window}, {"strides", window}});
  }
  const std::string rows =
      node.Add("MatMul", {MeansMatrix(node, in[2], out[2], false), node.in(0)});
  node.Out("MatMul", {rows, MeansMatrix(node, in[3], out[3], true)});
}

// --- resizing ---

// [batch, channels] of the data, then height and width of the output.
std::string SizesLike(ExportNode& node, const std::string& data) {
  const std::string shape = node.Add("Shape", {data});
  const std::string first =
      node.Add("Slice", {shape, node.Ints({0}), node.Ints({2}), node.Ints({0})});
  const std::string size = node.Ints({node.out_shape()[2], node.out_shape()[3]});
  return node.Add("Concat", {first, size}, {{"axis", int64_t{0}}});
}

void UpSampling(ExportNode& node) {
  const auto scale = node.Get<int64_t>("scale");
  if (node.Is("sample_type", "bilinear")) {
    const int64_t channels = node.in_shape(0)[1], kernel = 2 * scale - scale % 2,
                  pad = scale / 2;  // ceil((scale - 1) / 2)
    return node.Out("ConvTranspose", {node.in(0), node.in(1)},
                    {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                     {"strides", std::vector<int64_t>{scale, scale}},
                     {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                     {"group", channels}});
  }
  std::vector<std::string> parts;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const auto factor =
        static_cast<float>(node.out_shape()[2]) / static_cast<float>(node.in_shape(i)[2]);
    parts.push_back(node.Add("Resize", {node.in(i), "", node.Floats({4}, {1, 1, factor, factor})},
                             {{"mode", std::string("nearest")},
                              {"coordinate_transformation_mode", std::string("asymmetric")},
                              {"nearest_mode", std::string("floor")}}));
  }
  if (parts.size() == 1) return node.OutIs(parts[0]);
  if (node.Is("multi_input_mode", "sum")) return node.Out("Sum", parts);
  node.Out("Concat", parts, {{"axis", int64_t{1}}});
}

void BilinearResize(ExportNode& node) {
  const bool corners = node.Get<bool>("align_corners");
  node.Out(
      "Resize", {node.in(0), "", "", SizesLike(node, node.in(0))},
      {{"mode", std::string("linear")},
       {"coordinate_transformation_mode", std::string(corners ? "align_corners" : "half_pixel")}});
}

// --- losses: what they output ---

// Softmax over all elements of an example.
void SoftmaxOfExamples(ExportNode& node) {
  if (node.ndim() == 2) return node.Out("Softmax", {node.in(0)}, {{"axis", int64_t{1}}});
  const std::string rows = node.Add("Flatten", {node.in(0)}, {{"axis", int64_t{1}}});
  const std::string result = node.Add("Softmax", {rows}, {{"axis", int64_t{1}}});
  TShape flat{node.in_shape(0)[0], node.in_shape(0).Product(1, node.ndim())};
  node.OutIs(node.Reshape(result, flat, node.out_shape()));
}

void SoftmaxOutput(ExportNode& node) {
  if (node.Get<bool>("multi_output"))
    return node.Out("Softmax", {node.in(0)}, {{"axis", int64_t{1}}});
  if (node.Get<bool>("preserve_shape"))
    return node.Out("Softmax", {node.in(0)}, {{"axis", int64_t{-1}}});
  SoftmaxOfExamples(node);
}

void SoftmaxActivation(ExportNode& node) {
  if (node.Is("mode", "channel")) return node.Out("Softmax", {node.in(0)}, {{"axis", int64_t{1}}});
  SoftmaxOfExamples(node);
}

void Itself(ExportNode& node) {
  node.OutIs(node.in(0));
}

void Dropout(ExportNode& node) {
  if (!node.Is("mode", "training"))
    node.Refuse("mode = {} drops elements of predictions too", node.Text("mode"));
  Itself(node);
}

}  // namespace

std::vector<ExportEntry> LayerExports() {
  return {
      {"Convolution", Convolution},
      {"Deconvolution", Deconvolution},
      {"im2col", Im2col},
      {"col2im", Col2im},
      {"FullyConnected", FullyConnected},
      {"Pooling", Pooling},
      {"AdaptiveAvgPooling2D", AdaptiveAvgPooling},
      {"UpSampling", UpSampling},
      {"BilinearResize2D", BilinearResize},
      {"Dropout", Dropout},
      {"SoftmaxOutput", SoftmaxOutput},
      {"SoftmaxActivation", SoftmaxActivation},
      {"LinearRegressionOutput", Itself},
      {"MAERegressionOutput", Itself},
      {"LogisticRegressionOutput", [](ExportNode& node) { node.Out("Sigmoid", {node.in(0)}); }},
      {"MakeLoss", Itself},
      {"make_loss", Itself},
      {"BlockGrad", Itself},
      {"SVMOutput", Itself},
      {"IdentityAttachKLSparseReg", Itself},
      {"gradientmultiplier", Itself},
  };
}

}  // namespace mxtrain::onnx
