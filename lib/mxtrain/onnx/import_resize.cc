// SPDX-License-Identifier: Apache-2.0
// Resize and, before opset 10, Upsample: images by the operators for them, anything else as a
// product with a matrix of weights, or a selection, along one axis after the other.
#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// What happens to an axis: its lengths, and where its elements are read.
struct AxisResize {
  int axis = 0;
  int64_t in = 1, out = 1;
  double scale = 1;
  double start = 0, end = 1;  // of the region, tf_crop_and_resize
};

struct Way {
  std::string mode, place, rounding;
  double cubic = -0.75;
  bool antialias = false, exclude_outside = false;
};

// The place in the input that an element of the output stands for, in elements.
double PlaceOf(const ImportNode& node, const AxisResize& a, const std::string& place, int64_t at) {
  const auto x = static_cast<double>(at), in = static_cast<double>(a.in),
             out = static_cast<double>(a.out);
  if (place == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (place == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  if (place == "half_pixel_symmetric") {
    const double off = in / 2 * (1 - out / (a.scale * in));
    return off + (x + 0.5) / a.scale - 0.5;
  }
  if (place == "align_corners") return a.out > 1 ? x * (in - 1) / (out - 1) : 0;
  if (place == "asymmetric") return x / a.scale;
  if (place == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (place == "tf_crop_and_resize") {
    return a.out > 1 ? a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (out - 1)
                     : 0.5 * (a.start + a.end) * (in - 1);
  }
  Throw(ErrorKind::kData, "{}: there is no coordinate_transformation_mode '{}'", node.Describe(),
        place);
}

// R. Keys, Cubic convolution interpolation for digital image processing, 1981, equation 15.
double Cubic(double t, double a) {
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// The weight of each element of the input in the one at place x. Elements outside count as the
// last ones inside, or not at all.
std::vector<double> WeightsAt(const AxisResize& a, const Way& way, double x) {
  const double reach = way.mode == "cubic" ? 2 : 1,
               shrink = way.antialias ? std::min(1.0, a.scale) : 1;
  std::vector<double> weights(static_cast<size_t>(a.in), 0);
  double sum = 0;
  const auto first = static_cast<int64_t>(std::floor(x - reach / shrink)),
             last = static_cast<int64_t>(std::ceil(x + reach / shrink));
  for (int64_t i = first; i <= last; ++i) {
    const double t = (static_cast<double>(i) - x) * shrink;
    const double weight =
        way.mode == "cubic" ? Cubic(t, way.cubic) : std::max(0.0, 1 - std::abs(t));
    if (way.exclude_outside && (i < 0 || i >= a.in)) continue;
    weights[static_cast<size_t>(std::clamp<int64_t>(i, 0, a.in - 1))] += weight;
    sum += weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

int64_t NearestTo(const ImportNode& node, const Way& way, double x, int64_t length) {
  double at = 0;
  if (way.rounding == "round_prefer_floor") {
    at = std::ceil(x - 0.5);
  } else if (way.rounding == "round_prefer_ceil") {
    at = std::floor(x + 0.5);
  } else if (way.rounding == "floor") {
    at = std::floor(x);
  } else if (way.rounding == "ceil") {
    at = std::ceil(x);
  } else {
    Throw(ErrorKind::kData, "{}: there is no nearest_mode '{}'", node.Describe(), way.rounding);
  }
  return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(length - 1)));
}

bool IsOutside(const AxisResize& a, const Way& way, double x) {
  return way.place == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1));
}

// One axis resized.
std::string Along(ImportNode& node, const std::string& value, const AxisResize& a, const Way& way) {
  if (a.in > kMostOwnElements / a.out) node.Refuse("axis {} is too long", a.axis);
  std::vector<float> matrix;  // [in, out]
  std::vector<int64_t> nearest;
  const bool selects = way.mode == "nearest";
  if (!selects) matrix.resize(static_cast<size_t>(a.in * a.out));
  for (int64_t to = 0; to < a.out; ++to) {
    const double x = PlaceOf(node, a, way.place, to);
    if (selects) {
      nearest.push_back(NearestTo(node, way, x, a.in));
      continue;
    }
    if (IsOutside(a, way, x)) continue;
    const std::vector<double> weights = WeightsAt(a, way, x);
    for (int64_t from = 0; from < a.in; ++from)
      matrix[static_cast<size_t>(from * a.out + to)] =
          static_cast<float>(weights[static_cast<size_t>(from)]);
  }
  if (selects) {
    const std::string indices = node.OwnArray("rows", Tensor::Ints({a.out}, nearest));
    return node.Add("take", {value, indices}, {{"axis", params::Print(a.axis)}, {"mode", "clip"}});
  }
  const int last = node.ShapesOf(value)[0].ndim() - 1;
  const Kwargs swapped{{"dim1", params::Print(a.axis)}, {"dim2", params::Print(last)}};
  const std::string weights = node.OwnArray("weights", Tensor::Floats({a.in, a.out}, matrix));
  const std::string rows = a.axis == last ? value : node.Add("SwapAxis", {value}, swapped);
  const std::string product = node.Add("dot", {rows, weights});
  return a.axis == last ? product : node.Add("SwapAxis", {product}, swapped);
}

// Elements whose places lie outside get extrapolation_value.
std::string WithOutside(ImportNode& node, const std::string& value,
                        const std::vector<AxisResize>& axes, const Way& way) {
  const int ndim = node.ShapesOf(value)[0].ndim();
  std::string inside;
  for (const AxisResize& a : axes) {
    std::vector<float> flags;
    for (int64_t to = 0; to < a.out; ++to)
      flags.push_back(IsOutside(a, way, PlaceOf(node, a, way.place, to)) ? 0.0f : 1.0f);
    if (std::ranges::count(flags, 0.0f) == 0) continue;
    std::vector<int64_t> dims(static_cast<size_t>(ndim), 1);
    dims[static_cast<size_t>(a.axis)] = a.out;
    const std::string own = node.OwnArray("inside", Tensor::Floats(dims, flags));
    inside = inside.empty() ? own : Pair(node, "mul", inside, own);
  }
  if (inside.empty()) return value;
  const std::vector<int64_t> ones(static_cast<size_t>(ndim), 1);
  const float outside = node.Float("extrapolation_value", 0);
  return Chosen(node, inside, value, node.OwnArray("outside", Tensor::Floats(ones, {outside})));
}

// The lengths that `sizes` asks for; those of the batch are kept.
void FromSizes(const ImportNode& node, const std::vector<int>& axes, std::vector<AxisResize>* all) {
  const ImportValue& sizes = node.in(3);
  if (!sizes.is_constant()) node.Refuse("the size of its output depends on the data");
  const std::vector<int64_t> first = sizes.constant[0]->ToInts(),
                             second = sizes.constant[1]->ToInts();
  if (first.size() != axes.size() || second.size() != axes.size())
    node.Refuse("it does not give the size of its output along every axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = node.shape(0)[axes[i]], other = node.shape(0, 1)[axes[i]];
    const bool kept = first[i] == in && (second[i] == other || node.fixed_batch());
    if (in != other && kept) continue;
    if (in != other || first[i] != second[i])
      node.Refuse("it resizes {} to {}; the size of the output must not depend on the batch",
                  node.shape(0).ToString(), TupleOf(first));
    all->push_back(
        {axes[i], in, first[i], static_cast<double>(first[i]) / static_cast<double>(in)});
  }
  const std::string policy = node.Word("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  double scale = all->empty() ? 1 : all->front().scale;
  for (const AxisResize& a : *all)
    scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
  for (AxisResize& a : *all) {
    const double length = std::floor(scale * static_cast<double>(a.in) + 0.5);
    if (!(length >= 1 && length <= 1 << 20)) node.Refuse("the size of its output is {}", length);
    a.scale = scale;
    a.out = static_cast<int64_t>(length);
  }
}

std::vector<float> ScalesOf(const ImportNode& node, bool upsample) {
  if (!upsample) return node.array(2).ToFloats();
  if (node.has(1)) return node.array(1).ToFloats();
  return node.Numbers("scales");  // Upsample of opset 7
}

void FromScales(const ImportNode& node, const std::vector<float>& scales,
                const std::vector<int>& axes, std::vector<AxisResize>* all) {
  if (scales.size() != axes.size())
    node.Refuse("it has {} scales for {} axes", scales.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = node.shape(0)[axes[i]];
    if (scales[i] == 1) continue;
    if (node.DependsOnBatch(0, axes[i])) node.Refuse("it resizes the batch");
    const double scale = scales[i], length = std::floor(scale * static_cast<double>(in));
    if (!(length >= 1 && length <= 1 << 20)) node.Refuse("the size of its output is {}", length);
    all->push_back({axes[i], in, static_cast<int64_t>(length), scale});
  }
}

// roi: the starts of all axes, then their ends.
void ReadRegion(const ImportNode& node, const std::vector<int>& axes,
                std::vector<AxisResize>* all) {
  const std::vector<float> roi = node.array(1).ToFloats();
  if (roi.size() != 2 * axes.size())
    Throw(ErrorKind::kData, "{}: roi has {} numbers for {} axes", node.Describe(), roi.size(),
          axes.size());
  if (std::ranges::any_of(roi, [](float at) { return !(std::abs(at) < 1e6f); }))
    node.Refuse("its region lies far outside");
  for (AxisResize& a : *all) {
    const auto i = static_cast<size_t>(std::ranges::find(axes, a.axis) - axes.begin());
    a.start = roi[i];
    a.end = roi[axes.size() + i];
  }
}

// The operators for images, with gradients of their own, where one does the same.
bool ResizesImages(ImportNode& node, const std::vector<AxisResize>& all, const Way& way,
                   bool upsample) {
  if (node.ndim() != 4) return false;
  AxisResize sides[2] = {{2, node.shape(0)[2], node.shape(0)[2]},
                         {3, node.shape(0)[3], node.shape(0)[3]}};
  for (const AxisResize& a : all) {
    if (a.axis < 2) return false;
    sides[a.axis - 2] = a;
  }
  if (way.mode == "nearest") {
    const int64_t scale = sides[0].out / sides[0].in;
    const bool whole = scale >= 1 && std::ranges::all_of(sides, [scale](const AxisResize& a) {
                         return a.out == scale * a.in && a.scale == static_cast<double>(scale);
                       });
    // Of a whole factor every element is repeated, unless positions are rounded up.
    const bool repeats = upsample || (way.place == "asymmetric" && way.rounding == "floor") ||
                         (way.place == "half_pixel" && way.rounding.starts_with("round"));
    if (!whole || !repeats || scale > 1000) return false;
    node.Out("UpSampling", {node.ref(0)},
             {{"scale", params::Print(scale)}, {"sample_type", "nearest"}, {"num_args", "1"}});
    return true;
  }
  const bool corners = way.place == "align_corners";
  const bool half = way.place == "half_pixel" || way.place == "pytorch_half_pixel";
  if (way.mode != "linear" || !(corners || half) || way.antialias || way.exclude_outside)
    return false;
  for (const AxisResize& a : sides) {
    // The operator's scale is the quotient of the lengths; its position of one alone differs.
    const double quotient = static_cast<double>(a.out) / static_cast<double>(a.in);
    const bool same = corners || std::abs(a.scale - quotient) <= 1e-6 * quotient;
    if (!same || a.out > 10'000 || (way.place == "pytorch_half_pixel" && a.out == 1 && a.in > 1))
      return false;
  }
  node.Out("BilinearResize2D", {node.ref(0)},
           {{"height", params::Print(sides[0].out)},
            {"width", params::Print(sides[1].out)},
            {"align_corners", corners ? "True" : "False"}});
  return true;
}

void Resize(ImportNode& node) {
  const bool upsample = node.op() == "Upsample" || node.opset() == 10;
  std::vector<int> axes;
  for (const int64_t axis : node.Ints("axes")) axes.push_back(node.Axis(axis, node.ndim()));
  for (int i = 0; i < node.ndim() && !node.has("axes"); ++i) axes.push_back(i);
  Way way{node.Word("mode", "nearest"),
          node.Word("coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel"),
          node.Word("nearest_mode", upsample ? "floor" : "round_prefer_floor"),
          node.Float("cubic_coeff_a", -0.75f),
          node.Int("antialias", 0) != 0,
          node.Int("exclude_outside", 0) != 0};
  if (way.mode == "bilinear") way.mode = "linear";
  if (way.mode != "nearest" && way.mode != "linear" && way.mode != "cubic")
    Throw(ErrorKind::kData, "{}: there is no mode '{}'", node.Describe(), way.mode);
  if (node.shape(0).Size() == 0) node.Refuse("its data {} are empty", node.shape(0).ToString());
  std::vector<AxisResize> all;
  if (node.has(3)) {
    FromSizes(node, axes, &all);
  } else {
    FromScales(node, ScalesOf(node, upsample), axes, &all);
  }
  for (const AxisResize& a : all) {
    if (a.out < 1 || a.out > 1 << 20) node.Refuse("the size of its output is {}", a.out);
  }
  for (const AxisResize& a : all) {
    const double length = a.scale * static_cast<double>(a.in);
    if (way.place == "align_corners" && std::abs(length - static_cast<double>(a.out)) > 1e-3)
      node.Refuse("align_corners of a length of {} is not one thing everywhere; give sizes",
                  length);
  }
  if (way.place == "tf_crop_and_resize") ReadRegion(node, axes, &all);
  if (ResizesImages(node, all, way, upsample)) return;
  std::string value = node.ref(0);
  for (const AxisResize& a : all) value = Along(node, value, a, way);
  node.OutIs(WithOutside(node, value, all, way));
}

}  // namespace

std::vector<ImportEntry> ResizeImports() {
  return {{"Resize", Resize}, {"Upsample", Resize}};
}

}  // namespace mxtrain::onnx
