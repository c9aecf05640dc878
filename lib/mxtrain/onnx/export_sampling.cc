// SPDX-License-Identifier: Apache-2.0
// Images at places and in regions, and pixels as decoders give them.
#include <algorithm>

#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

// --- regions of interest ---

// The columns begin .. end - 1 of the regions [R, 5].
std::string Columns(ExportNode& node, int64_t begin, int64_t end) {
  return node.Add("Slice",
                  {node.in(1), node.Ints({begin}), node.Ints({end}), node.Ints({int64_t{1}})});
}

// A region of a negative image is 0 here and an error in ONNX: it becomes one of the first image,
// and its output 0.
std::string ImagesOf(ExportNode& node, std::string* exists) {
  const std::string images = Columns(node, 0, 1), zero = node.Scalar(0);
  *exists = node.Unsqueeze(node.Add("GreaterOrEqual", {images, zero}), {2, 3});
  return node.Add("Max", {images, zero});
}

void RoiAlign(ExportNode& node) {
  const auto size = node.Get<TShape>("pooled_size");
  std::string exists;
  const std::string images = ImagesOf(node, &exists);
  const std::string numbers = node.AsInt(node.Add("Squeeze", {images, node.Ints({1})}));
  const bool aligned = node.Get<bool>("aligned");
  const std::string cells =
      node.Add("RoiAlign", {node.in(0), Columns(node, 1, 5), numbers},
               {{"mode", std::string("avg")},
                {"output_height", size[0]},
                {"output_width", size[1]},
                {"sampling_ratio", std::max<int64_t>(0, node.Get<int64_t>("sample_ratio"))},
                {"spatial_scale", node.Number("spatial_scale")},
                {"coordinate_transformation_mode",
                 std::string(aligned ? "half_pixel" : "output_half_pixel")}});
  node.Out("Where", {exists, cells, node.Scalar(0)});
}

void RoiPooling(ExportNode& node) {
  const auto size = node.Get<TShape>("pooled_size");
  std::string exists;
  const std::string images = ImagesOf(node, &exists);
  const std::string regions =
      node.Add("Concat", {images, Columns(node, 1, 5)}, {{"axis", int64_t{1}}});
  const std::string cells = node.Add("MaxRoiPool", {node.in(0), regions},
                                     {{"pooled_shape", std::vector<int64_t>{size[0], size[1]}},
                                      {"spatial_scale", node.Number("spatial_scale")}});
  node.Out("Where", {exists, cells, node.Scalar(0)});
}

// --- grids of places, from -1 to 1 ---

void BilinearSampler(ExportNode& node) {
  node.Out("GridSample", {node.in(0), node.Transpose(node.in(1), {0, 2, 3, 1})},
           {{"mode", std::string("bilinear")},
            {"padding_mode", std::string("zeros")},
            {"align_corners", int64_t{1}}});
}

// Of `length` places.
float Place(int64_t index, int64_t length) {
  return -1 + 2 * static_cast<float>(index) / static_cast<float>(std::max<int64_t>(length - 1, 1));
}

// x, y and 1 of every place of the output, times the maps [N, 2, 3].
void AffineGrid(ExportNode& node) {
  const TShape& out = node.out_shape();
  const int64_t height = out[2], width = out[3];
  std::vector<float> places;
  for (int coordinate = 0; coordinate < 3; ++coordinate) {
    for (int64_t i = 0; i < height * width; ++i)
      places.push_back(coordinate == 0   ? Place(i % width, width)
                       : coordinate == 1 ? Place(i / width, height)
                                         : 1.0f);
  }
  const std::string maps = node.Add("Reshape", {node.in(0), node.Ints({-1, 2, 3})});
  const std::string grid = node.Add("MatMul", {maps, node.Floats({3, height * width}, places)});
  node.Out("Reshape", {grid, node.Ints({-1, 2, height, width})});
}

// The place of every pixel, moved by so many pixels.
void WarpedGrid(ExportNode& node) {
  const TShape& out = node.out_shape();
  const int64_t height = out[2], width = out[3];
  if (height == TShape::kUnknown || width == TShape::kUnknown)
    node.Refuse("the size of its images is unknown");
  std::vector<float> places, steps;
  for (const bool x : {true, false}) {
    const int64_t length = x ? width : height;
    steps.push_back(2 / static_cast<float>(std::max<int64_t>(length - 1, 1)));
    for (int64_t i = 0; i < height * width; ++i)
      places.push_back(Place(x ? i % width : i / width, length));
  }
  const std::string moved = node.Add("Mul", {node.in(0), node.Floats({1, 2, 1, 1}, steps)});
  node.Out("Add", {moved, node.Floats({1, 2, height, width}, places)});
}

void GridGenerator(ExportNode& node) {
  node.Is("transform_type", "warp") ? WarpedGrid(node) : AffineGrid(node);
}

// --- pixels ---

void ImageNormalize(ExportNode& node) {
  const auto of_channels = [&node](std::string_view name, float factor) {
    std::vector<float> values;
    for (const double value : node.Get<std::vector<double>>(name))
      values.push_back(static_cast<float>(value) * factor);
    return node.Floats({static_cast<int64_t>(values.size())}, values);
  };
  const std::string pixels = node.AsFloat(node.in(0));
  const std::string centered = node.Add("Sub", {pixels, of_channels("mean", 255)});
  const std::string numbers = node.Add("Div", {centered, of_channels("std", 255)});
  node.Out("Transpose", {numbers}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
}

}  // namespace

std::vector<ExportEntry> SamplingExports() {
  return {
      {"ROIAlign", RoiAlign},
      {"ROIPooling", RoiPooling},
      {"BilinearSampler", BilinearSampler},
      {"GridGenerator", GridGenerator},
      {"image_normalize", ImageNormalize},
  };
}

}  // namespace mxtrain::onnx
