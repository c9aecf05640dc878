// SPDX-License-Identifier: Apache-2.0
// Anchors, which are constants, and the boxes that a net makes of them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/operator/anchors.h"

namespace mxtrain::onnx {
namespace {

// Width and height of the anchors of a cell, in shares of the image; for a map of known size.
std::vector<std::array<double, 2>> KindsOfAnchors(const ExportNode& node, double height,
                                                  double width) {
  const auto sizes = node.Get<std::vector<double>>("sizes"),
             ratios = node.Get<std::vector<double>>("ratios");
  std::vector<std::array<double, 2>> kinds;
  const auto add = [&](double size, double ratio) {
    kinds.push_back({size * std::sqrt(ratio) * height / width, size / std::sqrt(ratio)});
  };
  for (const double size : sizes) add(size, ratios[0]);
  for (size_t k = 1; k < ratios.size(); ++k) add(sizes[0], ratios[k]);
  return kinds;
}

void MultiBoxPrior(ExportNode& node) {
  const int64_t height = node.in_shape(0)[2], width = node.in_shape(0)[3];
  if (height == TShape::kUnknown || width == TShape::kUnknown)
    node.Refuse("the size of its map depends on the size of the batch");
  const auto steps = node.Get<std::vector<double>>("steps"),
             offsets = node.Get<std::vector<double>>("offsets");
  const bool given = steps[0] > 0 && steps[1] > 0, clip = node.Get<bool>("clip");
  const double step_y = given ? steps[0] : 1 / static_cast<double>(height),
               step_x = given ? steps[1] : 1 / static_cast<double>(width);
  const auto kinds = KindsOfAnchors(node, static_cast<double>(height), static_cast<double>(width));
  std::vector<float> corners;
  for (int64_t cell = 0; cell < height * width; ++cell) {
    const double y = (static_cast<double>(cell / width) + offsets[0]) * step_y,
                 x = (static_cast<double>(cell % width) + offsets[1]) * step_x;
    for (const auto& [w, h] : kinds) {
      for (const double corner : {x - w / 2, y - h / 2, x + w / 2, y + h / 2})
        corners.push_back(static_cast<float>(clip ? std::clamp(corner, 0.0, 1.0) : corner));
    }
  }
  const int64_t count = std::ssize(corners) / 4;
  node.OutIs(node.Floats({1, count, 4}, corners));
}

// Columns begin and begin + 1 of [..., ..., 4].
std::string TwoColumns(ExportNode& node, const std::string& boxes, int64_t begin) {
  return node.Add("Slice", {boxes, node.Ints({begin}), node.Ints({begin + 2}), node.Ints({2})});
}

struct Centered {
  std::string middle, extent;  // [1, B, 2]
};
// In pixels; `size`: [1, 1, 2].
Centered AnchorsOf(ExportNode& node, const std::string& size) {
  const std::string& anchors = node.in(kAnchorBoxes);
  std::string middle = TwoColumns(node, anchors, 0), extent = TwoColumns(node, anchors, 2);
  if (node.Is("format", "corner")) {
    const std::string low = middle, high = extent;
    middle = node.Add("Mul", {node.Add("Add", {low, high}), node.Scalar(0.5f)});
    extent = node.Add("Sub", {high, low});
  }
  return {node.Add("Mul", {middle, size}), node.Add("Mul", {extent, size})};
}

// [N, B, 4]: where the boxes of the anchors are.
std::string BoxesOfAnchors(ExportNode& node) {
  const auto pixels = node.Get<TShape>("size");
  const std::string size =
      node.Floats({1, 1, 2}, {static_cast<float>(pixels[1]), static_cast<float>(pixels[0])});
  const Centered anchors = AnchorsOf(node, size);
  const auto variances = node.Get<std::vector<double>>("variances");
  const std::string offsets = node.Add(
      "Mul",
      {node.in(kAnchorOffsets), node.Floats({1, 1, 4}, {variances.begin(), variances.end()})});
  const std::string middle = node.Add(
      "Add", {node.Add("Mul", {TwoColumns(node, offsets, 0), anchors.extent}), anchors.middle});
  const auto most = static_cast<float>(std::log(kMostAnchorGrowth));
  const std::string growth =
      node.Add("Exp", {node.Add("Min", {TwoColumns(node, offsets, 2), node.Scalar(most)})});
  const std::string half =
      node.Add("Mul", {node.Add("Mul", {growth, anchors.extent}), node.Scalar(0.5f)});
  const auto inside = [&](const char* op) {
    const std::string corner = node.Add(op, {middle, half});
    return node.Add("Min", {node.Add("Max", {corner, node.Scalar(0)}), size});
  };
  const std::string low = inside("Sub"), high = inside("Add");
  return node.Add("Concat", {low, high}, {{"axis", int64_t{2}}});
}

void AnchorBoxes(ExportNode& node) {
  const int64_t anchors = node.in_shape(kAnchorScores)[1],
                columns = node.in_shape(kAnchorScores)[2];
  const std::string all = node.Add("Softmax", {node.in(kAnchorScores)}, {{"axis", int64_t{2}}});
  const std::string foreground =
      node.Add("Slice", {all, node.Ints({1}), node.Ints({columns}), node.Ints({2})});
  // [N, classes, B, 1]
  const std::string scores = node.Unsqueeze(node.Transpose(foreground, {0, 2, 1}), {3});
  std::vector<float> numbers(static_cast<size_t>(columns - 1));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::string labels = node.Add(
      "Expand", {node.Floats({1, columns - 1, 1, 1}, numbers), node.Add("Shape", {scores})});
  const std::string boxes = node.Add("Expand", {node.Unsqueeze(BoxesOfAnchors(node), {1}),
                                                node.Ints({1, columns - 1, anchors, 1})});
  node.Out("Concat", {labels, scores, boxes}, {{"axis", int64_t{3}}});
}

}  // namespace

std::vector<ExportEntry> AnchorExports() {
  return {
      {"_contrib_MultiBoxPrior", MultiBoxPrior},
      {"AnchorBoxes", AnchorBoxes},
  };
}

}  // namespace mxtrain::onnx
