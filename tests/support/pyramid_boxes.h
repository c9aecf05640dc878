// SPDX-License-Identifier: Apache-2.0
#pragma once
// The anchors of a small feature pyramid and what its maps say, by the definition.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/base/text.h"

namespace mxtrain::test {

struct PyramidAnchor {
  size_t level, ratio;
  double x, y, width, height;
  std::vector<double> Corners() const {
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
  }
};

// An image of 32 x 24 pixels in maps of 8 x 6 and 3 x 2 cells, with anchors of two ratios. Those of
// the second level are 32 / 3, rounded down, and 24 / 2 pixels apart.
struct SmallPyramid {
  static constexpr size_t kLevels = 2, kRatios = 2;
  static constexpr double kWidth = 32, kHeight = 24;
  static constexpr double kStepsX[] = {4, 10}, kStepsY[] = {4, 12}, kSizes[] = {7, 15},
                          kShapes[] = {0.5, 1.5};
  static constexpr size_t kRows[] = {6, 2}, kColumns[] = {8, 3};

  static std::vector<std::pair<std::string, std::string>> Parameters() {
    return {{"strides", "(4, 12)"}, {"sizes", "(7, 15)"}, {"ratios", "(0.5, 1.5)"}};
  }
  static std::vector<TShape> Shapes(int64_t images) {
    return {{images, 2, 6, 8}, {images, 2, 2, 3}, {images, 8, 6, 8}, {images, 8, 2, 3}};
  }
  static std::vector<PyramidAnchor> Anchors() {
    std::vector<PyramidAnchor> anchors;
    for (size_t l = 0; l < kLevels; ++l) {
      for (size_t cell = 0; cell < kRows[l] * kColumns[l]; ++cell) {
        for (size_t a = 0; a < kRatios; ++a) {
          const double half_width = std::round(kSizes[l] / std::sqrt(kShapes[a]) / 2),
                       half_height = std::round(kSizes[l] * std::sqrt(kShapes[a]) / 2);
          anchors.push_back({l, a, static_cast<double>(cell % kColumns[l]) * kStepsX[l],
                             static_cast<double>(cell / kColumns[l]) * kStepsY[l], 2 * half_width,
                             2 * half_height});
        }
      }
    }
    return anchors;
  }
  // Where the numbers of an anchor are: in the map of its level, of channel `number` of `numbers`
  // for each ratio.
  static size_t Index(size_t image, const PyramidAnchor& at, size_t number, size_t numbers) {
    const size_t plane = kRows[at.level] * kColumns[at.level];
    const auto cell = static_cast<size_t>(at.y / kStepsY[at.level]) * kColumns[at.level] +
                      static_cast<size_t>(at.x / kStepsX[at.level]);
    return ((image * kRatios + at.ratio) * numbers + number) * plane + cell;
  }
  // `maps`: the arguments.
  static double Score(const std::vector<std::vector<double>>& maps, size_t image,
                      const PyramidAnchor& at) {
    return maps[at.level][Index(image, at, 0, 1)];
  }
  static double Offset(const std::vector<std::vector<double>>& maps, size_t image,
                       const PyramidAnchor& at, size_t k) {
    return maps[kLevels + at.level][Index(image, at, k, 4)];
  }
};

}  // namespace mxtrain::test
