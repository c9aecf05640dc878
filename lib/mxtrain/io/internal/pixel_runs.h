// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of pixels as COCO has them: run lengths and polygons become runs. Private to io.
//
// Pixels are numbered column by column: (x, y) of an image of this height is x * height + y.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// The pixels from `begin` up to `end`.
struct PixelRun {
  int64_t begin = 0, end = 0;
  friend bool operator==(const PixelRun&, const PixelRun&) = default;
};
using PixelRuns = std::vector<PixelRun>;

MXTRAIN_API int64_t CountPixels(const PixelRuns& runs);
// The union, sorted, of runs in any order: at most MostRuns.
MXTRAIN_API PixelRuns Union(PixelRuns runs);

inline size_t MostRuns(int height, int width) {
  return (static_cast<size_t>(height) + 1) * static_cast<size_t>(width) / 2 + 1;
}

// A corner of a polygon on COCO's grid, which divides each pixel into 5 x 5.
struct GridCorner {
  int64_t x = 0, y = 0;
};
// Of a coordinate in pixels, whose magnitude is at most kMostPolygonCoordinate.
inline constexpr double kMostPolygonCoordinate = 1e8;
MXTRAIN_API int64_t OnPolygonGrid(double coordinate);

// Adds the pixels in a polygon, as pycocotools finds them: an edge is drawn as a line of points of
// the grid, as Bresenham does; where it passes the middle of a column of pixels, the column changes
// between inside and outside, from the first pixel whose middle is not above it. What is enclosed
// twice is outside. A polygon may go beyond the image. Takes time in proportion to the columns that
// its edges cross.
MXTRAIN_API void AddPolygon(std::span<const GridCorner> corners, int height, int width,
                            PixelRuns* runs);

// Adds what counts say: so many pixels outside, then inside, and so on.
MXTRAIN_API void AddCounts(std::span<const int64_t> counts, PixelRuns* runs);
// The counts in a text of COCO's compressed form. A number is written in groups of five bits, the
// lowest first, as characters from '0'; 32 is added to all but the last, whose highest bit is the
// sign; from the fourth on it is the difference to the count two before. Refuses other characters,
// an end within a number, and counts below 0.
MXTRAIN_API std::optional<Refusal> ReadCounts(std::string_view text, std::vector<int64_t>* counts);

}  // namespace mxtrain::io
