// SPDX-License-Identifier: Apache-2.0
// Images at places and in regions.
#include <algorithm>
#include <array>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// Places [N, 2, H, W], column and row in elements of the image, one plane each.
struct Places {
  std::string x, y;
};

// How an image is read beside its elements.
struct Sampling {
  int64_t width, height;
  bool corners;  // -1 and 1 are the middles of the last elements, not their edges
  std::string padding;
};

// -1 .. 1 as elements of an axis.
std::string InElements(ImportNode& node, const std::string& g, int64_t length, bool corners) {
  const auto n = static_cast<double>(length);
  const double scale = (corners ? n - 1 : n) / 2, start = (n - 1) / 2;
  return WithNumber(node, "_plus_scalar", WithNumber(node, "_mul_scalar", g, scale), start);
}

// Mirrored at `low` and `high` until it is between them.
std::string Reflected(ImportNode& node, const std::string& at, double low, double high) {
  const double span = high - low;
  if (span <= 0) return node.Add("zeros_like", {at});
  const std::string turn =
      WithNumber(node, "_mod_scalar", WithNumber(node, "_minus_scalar", at, low), 2 * span);
  const std::string back = node.Add("abs", {WithNumber(node, "_minus_scalar", turn, span)});
  return WithNumber(node, "_rminus_scalar", back, low + span);
}

// Moved into the image as padding_mode says; outside it stays with zeros.
std::string Inside(ImportNode& node, const std::string& at, int64_t length, const Sampling& s) {
  const double last = static_cast<double>(length) - 1;
  std::string moved = at;
  if (s.padding == "reflection")
    moved = s.corners ? Reflected(node, at, 0, last) : Reflected(node, at, -0.5, last + 0.5);
  if (s.padding == "zeros") return moved;
  return node.Add("clip", {moved}, {{"a_min", "0"}, {"a_max", params::Print(last)}});
}

// The image at places inside of it, or zero, by linear interpolation.
std::string Sampled(ImportNode& node, const Places& at, const Sampling& s) {
  // BilinearSampler counts from -1 to 1 between the middles of the last elements.
  const auto counted = [&node](const std::string& place, int64_t length) {
    const double half = (static_cast<double>(length) - 1) / 2;
    return WithNumber(node, "_minus_scalar", WithNumber(node, "_div_scalar", place, half), 1);
  };
  const std::string grid = Joined(node, {counted(at.x, s.width), counted(at.y, s.height)}, 1);
  return node.Add("BilinearSampler", {node.ref(0), grid});
}

// The weights of the four elements around a place, which is `rest` behind the second.
std::array<std::string, 4> CubicWeights(ImportNode& node, const std::string& rest) {
  constexpr double kA = -0.75;
  std::array<std::string, 4> weights;
  for (int i = 0; i < 4; ++i) {
    const std::string t = node.Add("abs", {WithNumber(node, "_minus_scalar", rest, i - 1)});
    // ((p t + q) t + r) t + s, of R. Keys, 1981, for |t| up to 1 and beyond.
    const bool near = i == 1 || i == 2;
    const std::array<double, 4> c = near ? std::array<double, 4>{kA + 2, -(kA + 3), 0, 1}
                                         : std::array<double, 4>{kA, -5 * kA, 8 * kA, -4 * kA};
    std::string sum = WithNumber(node, "_mul_scalar", t, c[0]);
    for (size_t k = 1; k < 4; ++k) {
      sum = WithNumber(node, "_plus_scalar", sum, c[k]);
      if (k < 3) sum = node.Add("elemwise_mul", {sum, t});
    }
    weights[static_cast<size_t>(i)] = sum;
  }
  return weights;
}

std::string CubicSampled(ImportNode& node, const Places& at, const Sampling& s) {
  const Places floor{node.Add("floor", {at.x}), node.Add("floor", {at.y})};
  const auto across = CubicWeights(node, node.Add("elemwise_sub", {at.x, floor.x})),
             down = CubicWeights(node, node.Add("elemwise_sub", {at.y, floor.y}));
  std::string sum;
  for (int j = 0; j < 4; ++j) {
    const std::string row =
        Inside(node, WithNumber(node, "_plus_scalar", floor.y, j - 1), s.height, s);
    for (int i = 0; i < 4; ++i) {
      const std::string column =
          Inside(node, WithNumber(node, "_plus_scalar", floor.x, i - 1), s.width, s);
      const std::string weight =
          node.Add("elemwise_mul", {across[static_cast<size_t>(i)], down[static_cast<size_t>(j)]});
      const std::string part = Pair(node, "mul", Sampled(node, {column, row}, s), weight);
      sum = sum.empty() ? part : node.Add("elemwise_add", {sum, part});
    }
  }
  return sum;
}

void GridSample(ImportNode& node) {
  std::string mode = node.Word("mode", "linear");
  if (mode == "bilinear") mode = "linear";  // before opset 20
  if (mode == "bicubic") mode = "cubic";
  if (node.ndim() != 4) node.Refuse("its data {} are not images", node.shape(0).ToString());
  const Sampling s{node.shape(0)[3], node.shape(0)[2], node.Int("align_corners", 0) != 0,
                   node.Word("padding_mode", "zeros")};
  if (s.padding != "zeros" && s.padding != "border" && s.padding != "reflection")
    Throw(ErrorKind::kData, "{}: there is no padding_mode '{}'", node.Describe(), s.padding);
  if (s.width < 2 || s.height < 2) node.Refuse("its images have one row or column");
  const std::string grid = node.Add("transpose", {node.ref(1)}, {{"axes", "(0, 3, 1, 2)"}});
  if (mode == "linear" && s.padding == "zeros" && s.corners)
    return node.Out("BilinearSampler", {node.ref(0), grid});
  Places at{InElements(node, Sliced(node, grid, 1, 0, 1), s.width, s.corners),
            InElements(node, Sliced(node, grid, 1, 1, 2), s.height, s.corners)};
  if (mode == "cubic") return node.OutIs(CubicSampled(node, at, s));
  if (mode == "nearest") at = {RoundedToEven(node, at.x), RoundedToEven(node, at.y)};
  if (mode != "nearest" && mode != "linear")
    Throw(ErrorKind::kData, "{}: there is no mode '{}'", node.Describe(), mode);
  node.OutIs(Sampled(node, {Inside(node, at.x, s.width, s), Inside(node, at.y, s.height, s)}, s));
}

// Regions [R, 4] and the numbers of their images [R], as [R, 5].
void RoiAlign(ImportNode& node) {
  // Before opset 16 there was one way.
  const std::string place = node.Word("coordinate_transformation_mode",
                                      node.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (node.Word("mode", "avg") != "avg") node.Refuse("only means have an equivalent");
  if (place != "half_pixel" && place != "output_half_pixel")
    Throw(ErrorKind::kData, "{}: there is no coordinate_transformation_mode '{}'", node.Describe(),
          place);
  const std::string images = node.Add("expand_dims", {node.ref(2)}, {{"axis", "1"}});
  const std::string regions =
      node.Add("Concat", {images, node.ref(1)}, {{"num_args", "2"}, {"dim", "1"}});
  node.Out("ROIAlign", {node.ref(0), regions},
           {{"pooled_size", TupleOf({node.Int("output_height", 1), node.Int("output_width", 1)})},
            {"spatial_scale", params::Print(node.Float("spatial_scale", 1))},
            {"sample_ratio", params::Print(node.Int("sampling_ratio", 0))},
            {"aligned", place == "half_pixel" ? "True" : "False"}});
}

void MaxRoiPool(ImportNode& node) {
  node.Out("ROIPooling", {node.ref(0), node.ref(1)},
           {{"pooled_size", TupleOf(node.Ints("pooled_shape"))},
            {"spatial_scale", params::Print(node.Float("spatial_scale", 1))}});
}

}  // namespace

std::vector<ImportEntry> SamplingImports() {
  return {
      {"GridSample", GridSample},
      {"RoiAlign", RoiAlign},
      {"MaxRoiPool", MaxRoiPool},
  };
}

}  // namespace mxtrain::onnx
