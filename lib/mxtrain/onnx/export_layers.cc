// SPDX-License-Identifier: Apache-2.0
// Convolution, matrix products, pooling, resizing, and what a loss outputs.
#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

// A window parameter of two axes: (h, w), or () for `standard`.
std::vector<int64_t> Pair(const ExportNode& node, std::string_view name, int64_t standard) {
  const auto given = node.Get<TShape>(name);
  if (given.ndim() == 0) return {standard, standard};
  return {given[0], given[given.ndim() - 1]};
}

std::vector<int64_t> BothSides(const std::vector<int64_t>& pad) {
  return {pad[0], pad[1], pad[0], pad[1]};
}

// Before the data, then after them.
std::vector<int64_t> ConvolutionPads(const ExportNode& node) {
  if (node.Is("pad", "same")) return {};
  const auto pad = node.Get<TShape>("pad");
  if (pad.ndim() == 4) return {pad[0], pad[1], pad[2], pad[3]};
  return BothSides(Pair(node, "pad", 0));
}

// The pads, or the rule that gives them.
void SetPads(const ExportNode& node, const std::vector<int64_t>& pads, Attributes* attributes) {
  if (node.Is("pad", "same")) {
    (*attributes)["auto_pad"] = std::string("SAME_UPPER");
  } else {
    (*attributes)["pads"] = pads;
  }
}

void Convolution(ExportNode& node) {
  if (node.ndim() != 4) node.Refuse("its data {} are not images", node.in_shape(0).ToString());
  std::vector<std::string> inputs{node.in(0), node.in(1)};
  if (!node.Get<bool>("no_bias")) inputs.push_back(node.in(2));
  Attributes attributes{{"kernel_shape", Pair(node, "kernel", 1)},
                        {"strides", Pair(node, "stride", 1)},
                        {"dilations", Pair(node, "dilate", 1)},
                        {"group", node.Get<int64_t>("num_group")}};
  SetPads(node, ConvolutionPads(node), &attributes);
  node.Out("Conv", inputs, attributes);
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
struct Windows {
  int64_t in, out, kernel, stride, pad;
  int64_t overhang() const {
    return std::max<int64_t>(0, (out - 1) * stride + kernel - in - 2 * pad);
  }
};

void GlobalPooling(ExportNode& node) {
  if (node.Is("pool_type", "sum"))
    return node.OutIs(node.Reduce("ReduceSum", node.in(0), {2, 3}, true));
  if (node.Is("pool_type", "lp"))
    return node.Out("GlobalLpPool", {node.in(0)}, {{"p", node.Get<int64_t>("p_value")}});
  node.Out(node.Is("pool_type", "max") ? "GlobalMaxPool" : "GlobalAveragePool", {node.in(0)});
}

void Pooling(ExportNode& node) {
  if (node.Get<bool>("global_pool")) return GlobalPooling(node);
  const bool same = node.Is("pad", "same");
  const std::vector<int64_t> kernel = Pair(node, "kernel", 1), stride = Pair(node, "stride", 1),
                             pad = same ? std::vector<int64_t>{0, 0} : Pair(node, "pad", 0);
  std::vector<int64_t> pads = BothSides(pad);
  bool beyond = false;
  for (size_t axis = 0; axis < 2 && !same; ++axis) {
    const int at = 2 + static_cast<int>(axis);
    const Windows windows{node.in_shape(0)[at], node.out_shape()[at], kernel[axis], stride[axis],
                          pad[axis]};
    if (windows.in == TShape::kUnknown) node.Refuse("the size of its images is unknown");
    beyond = beyond || windows.overhang() > 0;
    pads[2 + axis] += windows.overhang();
    if ((windows.out - 1) * windows.stride - windows.pad >= windows.in)
      node.Refuse("a window has no element of the image");
  }
  std::string data = node.in(0);
  const bool average = node.Is("pool_type", "avg");
  const bool count_pad =
      average && !node.Is("count_include_pad", "False") && !node.Is("count_include_pad", "false");
  const bool too_wide = pads[2] >= kernel[0] || pads[3] >= kernel[1];
  // Padding that counts, unlike what lies beyond it, becomes part of the image. So does padding
  // that ONNX does not allow, if it cannot be told from zeros.
  if (count_pad && beyond) {
    data = node.Add("Pad", {data, node.Ints({0, 0, pad[0], pad[1], 0, 0, pad[0], pad[1]})});
    pads = {0, 0, pads[2] - pad[0], pads[3] - pad[1]};
  } else if (too_wide) {
    node.Refuse("its last windows begin in the padding");
  }
  Attributes attributes{{"kernel_shape", kernel}, {"strides", stride}};
  SetPads(node, pads, &attributes);
  if (node.Is("pool_type", "max")) return node.Out("MaxPool", {data}, attributes);
  if (node.Is("pool_type", "lp")) {
    attributes["p"] = node.Get<int64_t>("p_value");
    return node.Out("LpPool", {data}, attributes);
  }
  attributes["count_include_pad"] = int64_t{(count_pad && !beyond) || !average};
  if (average) return node.Out("AveragePool", {data}, attributes);
  const std::string mean = node.Add("AveragePool", {data}, attributes);
  node.Out("Mul", {mean, node.Scalar(static_cast<float>(kernel[0] * kernel[1]))});
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
  };
}

}  // namespace mxtrain::onnx
