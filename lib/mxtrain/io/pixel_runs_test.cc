// SPDX-License-Identifier: Apache-2.0
// Polygons and counts of COCO as pixels. tests/reference/check_coco_masks.py compares many more
// with pycocotools, from which the drawings here come.
#include "mxtrain/io/internal/pixel_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "mxtrain/base/format.h"
#include "mxtrain/base/philox.h"

namespace mxtrain::io {
namespace {

using Numbers = std::vector<double>;
using Counts = std::vector<int64_t>;

std::vector<GridCorner> Corners(const Numbers& coordinates) {
  std::vector<GridCorner> corners;
  for (size_t i = 0; i < coordinates.size(); i += 2)
    corners.push_back({OnPolygonGrid(coordinates[i]), OnPolygonGrid(coordinates[i + 1])});
  return corners;
}

// Rows of '#' and '.', each ended by a line.
std::string Drawn(const PixelRuns& runs, int height, int width) {
  std::string text;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int64_t pixel = int64_t{x} * height + y;
      const bool inside = std::ranges::any_of(
          runs, [pixel](const PixelRun& run) { return run.begin <= pixel && pixel < run.end; });
      text += inside ? '#' : '.';
    }
    text += '\n';
  }
  return text;
}

std::string DrawnPolygon(const Numbers& coordinates, int height, int width) {
  PixelRuns runs;
  AddPolygon(Corners(coordinates), height, width, &runs);
  return Drawn(Union(runs), height, width);
}

// As AddPolygon says, point by point: a column changes below each place where a line of points
// passes from the left half of a pixel to the right one, or back.
std::string DrawnByPoints(const Numbers& coordinates, int height, int width) {
  std::vector<std::vector<bool>> inside(static_cast<size_t>(width),
                                        std::vector<bool>(static_cast<size_t>(height)));
  const std::vector<GridCorner> corners = Corners(coordinates);
  for (size_t i = 0; i < corners.size(); ++i) {
    GridCorner from = corners[i], to = corners[(i + 1) % corners.size()];
    const int64_t wide = std::abs(to.x - from.x), high = std::abs(to.y - from.y);
    if (wide >= high ? from.x > to.x : from.y > to.y) std::swap(from, to);
    const auto steps = static_cast<double>(std::max(wide, high));
    const double rise = static_cast<double>(wide >= high ? to.y - from.y : to.x - from.x) / steps;
    GridCorner last = from;
    for (double step = 0; step <= steps && steps > 0; ++step) {
      GridCorner point = from;
      (wide >= high ? point.x : point.y) += static_cast<int64_t>(step);
      int64_t& other = wide >= high ? point.y : point.x;
      other = static_cast<int64_t>(static_cast<double>(other) + rise * step + 0.5);
      const int64_t left = std::min(point.x, last.x), top = std::min(point.y, last.y);
      if (point.x != last.x && left >= 2 && left % 5 == 2 && left / 5 < width) {
        for (int y = 0; y < height; ++y) {
          if (5 * y + 2 < top) continue;
          auto pixel = inside[static_cast<size_t>(left / 5)][static_cast<size_t>(y)];
          pixel = !pixel;
        }
      }
      last = point;
    }
  }
  std::string text;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    for (const std::vector<bool>& column : inside) text += column[y] ? '#' : '.';
    text += '\n';
  }
  return text;
}

std::pair<Counts, std::string> Read(std::string_view text) {
  Counts counts;
  const auto refusal = ReadCounts(text, &counts);
  return {counts, refusal ? refusal->reason : ""};
}

}  // namespace

TEST_CASE("polygons cover the pixels that they cover in pycocotools") {
  const std::string block = ".....\n.###.\n.###.\n.....\n";
  CHECK(DrawnPolygon({1, 1, 4, 1, 4, 3, 1, 3}, 4, 5) == block);
  CHECK(DrawnPolygon({1, 3, 4, 3, 4, 1, 1, 1}, 4, 5) == block);
  CHECK(DrawnPolygon({0.5, 0.5, 3.5, 0.5, 3.5, 2.5, 0.5, 2.5}, 4, 5) == block);
  CHECK(DrawnPolygon({0, 0, 5, 4, 0, 4}, 4, 5) == "#....\n##...\n###..\n####.\n");
  CHECK(DrawnPolygon({0, 0, 3, 0, 3, 3}, 3, 4) == ".##.\n..#.\n....\n");
  // It crosses itself, is beyond the image, or between the middles of pixels.
  CHECK(DrawnPolygon({0, 0, 5, 4, 5, 0, 0, 4}, 4, 5) == "#...#\n##.##\n##.##\n#...#\n");
  CHECK(DrawnPolygon({-10, -10, 2.3, -10, 2.3, 20}, 4, 5) == "##...\n##...\n##...\n##...\n");
  CHECK(DrawnPolygon({9, 9, 20, 9, 9, 20}, 4, 5) == ".....\n.....\n.....\n.....\n");
  CHECK(DrawnPolygon({1, 1, 1.4, 1.2, 1.1, 1.4}, 4, 5) == ".....\n.....\n.....\n.....\n");
  // Ten times around is inside and outside; far corners take no time.
  Numbers around;
  for (int i = 0; i < 10; ++i) around.insert(around.end(), {1, 1, 4, 1, 4, 3, 1, 3});
  CHECK(DrawnPolygon(around, 4, 5) == ".....\n.....\n.....\n.....\n");
  CHECK(DrawnPolygon({-1e8, -1e8, 1e8, -1e8, 1e8, 1e8, -1e8, 1e8}, 2, 2) == "##\n##\n");
}

TEST_CASE("polygons: the crossings of edges are those of their lines of points") {
  uint64_t draw = 0;
  const auto random = [&draw](int64_t below) {
    return static_cast<int64_t>(PhiloxAt(5, 1, 2, draw++) % static_cast<uint64_t>(below));
  };
  int64_t inside = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const int height = 1 + static_cast<int>(random(12)), width = 1 + static_cast<int>(random(12));
    Numbers coordinates;
    for (int64_t corner = 3 + random(6); corner > 0; --corner) {
      for (const int side : {width, height})
        coordinates.push_back(static_cast<double>(random(20 * side + 80) - 40) / 10);
    }
    const std::string drawn = DrawnPolygon(coordinates, height, width);
    INFO(format("{} in {}x{}", join(coordinates, ", "), height, width));
    REQUIRE(drawn == DrawnByPoints(coordinates, height, width));
    inside += std::ranges::count(drawn, '#');
  }
  CHECK(inside > 10'000);
}

TEST_CASE("polygons of many edges need no more memory than their image") {
  std::vector<GridCorner> corners;
  for (int i = 0; i < 100'000; ++i) corners.push_back({i % 2 * 10, 0});
  corners.push_back({10, 10});
  corners.push_back({0, 10});
  PixelRuns runs;
  AddPolygon(corners, 2, 2, &runs);
  CHECK(Drawn(runs, 2, 2) == "##\n##\n");
}

TEST_CASE("runs: their union, and runs from counts") {
  CHECK(Union({{5, 7}, {0, 2}, {2, 3}, {6, 9}, {4, 4}}) == PixelRuns{{0, 3}, {5, 9}});
  CHECK(CountPixels(Union({{5, 7}, {0, 2}, {6, 9}})) == 6);
  CHECK(Union({}).empty());
  PixelRuns runs;
  AddCounts(Counts{2, 3, 0, 1, 4}, &runs);
  CHECK(Union(runs) == PixelRuns{{2, 6}});
  CHECK(Drawn(Union(runs), 2, 5) == ".##..\n.##..\n");
}

TEST_CASE("counts in the compressed form") {
  CHECK(Read("237").first == Counts{2, 3, 7});
  CHECK(Read("0<").first == Counts{0, 12});
  CHECK(Read("012P10PO").first == Counts{0, 1, 2, 33, 2, 1});
  CHECK(Read("5T33NUo0PMhRV1O").first == Counts{5, 100, 3, 98, 1000, 2, 40000, 1});
  CHECK(Read("").first.empty());
  for (const char* good : {"237", "0<", "012P10PO", ""}) CHECK(Read(good).second.empty());
  CHECK(Read("2 7").second == "it has ' ', which is not in counts");
  CHECK(Read("2\x7f").second == "it has '\\x7f', which is not in counts");
  CHECK(Read("23T").second == "it ends within a number");
  CHECK(Read("N").second == "count 1 is -2");
  CHECK(Read("2310").second.empty());
  CHECK(Read("231L").second == "count 4 is -1");
  CHECK(Read(std::string(20, 'o')).second == "a number in it is too large");
}

}  // namespace mxtrain::io
