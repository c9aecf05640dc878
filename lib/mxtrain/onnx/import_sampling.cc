// SPDX-License-Identifier: Apache-2.0
// Images at places and in regions.
#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

std::string Tuple(const std::vector<int64_t>& values) {
  return TShape(std::span<const int64_t>(values)).ToTuple();
}

void GridSample(ImportNode& node) {
  const std::string mode = node.Word("mode", "linear");
  const bool linear = mode == "linear" || mode == "bilinear";  // before opset 20
  if (node.ndim() != 4 || !linear || node.Word("padding_mode", "zeros") != "zeros" ||
      node.Int("align_corners", 0) == 0)
    node.Refuse(
        "only linear interpolation of images with align_corners and zeros outside has an "
        "equivalent (BilinearSampler)");
  const std::string grid = node.Add("transpose", {node.ref(1)}, {{"axes", "(0, 3, 1, 2)"}});
  node.Out("BilinearSampler", {node.ref(0), grid});
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
           {{"pooled_size", Tuple({node.Int("output_height", 1), node.Int("output_width", 1)})},
            {"spatial_scale", params::Print(node.Float("spatial_scale", 1))},
            {"sample_ratio", params::Print(node.Int("sampling_ratio", 0))},
            {"aligned", place == "half_pixel" ? "True" : "False"}});
}

void MaxRoiPool(ImportNode& node) {
  node.Out("ROIPooling", {node.ref(0), node.ref(1)},
           {{"pooled_size", Tuple(node.Ints("pooled_shape"))},
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
