// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sheets of images as fed to a net, with text below each: the first batch of a run, the worst
// mistakes of an evaluation.
#include <string>
#include <vector>

#include "app/report/plot/drawing.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::report {

struct SheetImage {
  io::Image image;
  std::vector<std::string> lines;
};
// Draws all given images; use at most a few dozen. All have the same size; small ones are enlarged.
// Lines that are wider than their image are shortened in the middle.
plot::Drawing DrawSheet(const std::string& title, const std::vector<SheetImage>& images);

// How many images stand side by side: such that the last line is full or nearly so, in a shape near
// that of a screen, within `most_width`.
size_t SheetColumns(size_t images, double cell_width, double cell_height, double most_width);

// Converts a net's input back to images by inverting `normalize` (the last transform).
class ImageReader {
 public:
  explicit ImageReader(const std::vector<io::TransformSpec>& transforms);
  // Whether an input contains images: [N, 1 or 3, H, W].
  static bool IsImage(const DataDesc& input);
  // `planes`: [C, H, W] of one example.
  io::Image Read(const float* planes, const TShape& batch_shape) const;

 private:
  std::vector<double> mean_{0}, std_{1};  // one number, or one per channel
};

}  // namespace mxtrain::report
