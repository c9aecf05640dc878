// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/pixel_runs.h"

#include <algorithm>

#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"

namespace mxtrain::io {
namespace {

constexpr int64_t kGridOfPixel = 5, kGridMiddle = 2;  // points of the grid; the middle one

// The points of an edge, from its first to its last along the axis in which it is longer.
class GridEdge {
 public:
  GridEdge(GridCorner from, GridCorner to) {
    steps_ = std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
    is_flat_ = std::abs(to.x - from.x) == steps_;
    if (is_flat_ ? from.x > to.x : from.y > to.y) std::swap(from, to);
    from_ = from, to_ = to;
    const int64_t rise = is_flat_ ? to.y - from.y : to.x - from.x;
    if (steps_ > 0) slope_ = static_cast<double>(rise) / static_cast<double>(steps_);
  }

  int64_t left() const { return std::min(from_.x, to_.x); }
  int64_t right() const { return std::max(from_.x, to_.x); }
  // The upper one of the two points between which it passes from the column of the grid to the
  // next. Requires left() <= column < right().
  int64_t CrossingAt(int64_t column) const {
    if (is_flat_) return std::min(Other(column - from_.x), Other(column + 1 - from_.x));
    // Steps by at most one column, always to the same side: the first point beyond.
    const bool rises = to_.x > from_.x;
    int64_t before = 0, beyond = steps_;
    while (beyond - before > 1) {
      const int64_t middle = before + (beyond - before) / 2;
      ((Other(middle) > column) == rises ? beyond : before) = middle;
    }
    return from_.y + before;
  }

 private:
  // The coordinate of a point along the shorter axis, truncated as pycocotools does.
  int64_t Other(int64_t step) const {
    const auto start = static_cast<double>(is_flat_ ? from_.y : from_.x);
    return static_cast<int64_t>(start + slope_ * static_cast<double>(step) + 0.5);
  }

  GridCorner from_, to_;
  int64_t steps_ = 0;
  bool is_flat_ = false;
  double slope_ = 0;
};

// The first pixel whose middle is at this place of the grid or beyond; at least 0.
int64_t FirstPixelFrom(int64_t grid) {
  return grid <= kGridMiddle ? 0 : CeilDivide(grid - kGridMiddle, kGridOfPixel);
}

// Sorts; two changes at a pixel are none.
void CancelPairs(std::vector<int64_t>* changes) {
  std::ranges::sort(*changes);
  size_t kept = 0;
  for (const int64_t change : *changes) {
    if (kept > 0 && (*changes)[kept - 1] == change) {
      --kept;
    } else {
      (*changes)[kept++] = change;
    }
  }
  changes->resize(kept);
}

}  // namespace

int64_t CountPixels(const PixelRuns& runs) {
  int64_t pixels = 0;
  for (const PixelRun& run : runs) pixels += run.end - run.begin;
  return pixels;
}

PixelRuns Union(PixelRuns runs) {
  std::ranges::sort(runs, {}, &PixelRun::begin);
  PixelRuns merged;
  for (const PixelRun& run : runs) {
    if (run.begin == run.end) continue;
    if (merged.empty() || run.begin > merged.back().end) {
      merged.push_back(run);
    } else {
      merged.back().end = std::max(merged.back().end, run.end);
    }
  }
  return merged;
}

int64_t OnPolygonGrid(double coordinate) {
  return static_cast<int64_t>(static_cast<double>(kGridOfPixel) * coordinate + 0.5);
}

void AddPolygon(std::span<const GridCorner> corners, int height, int width, PixelRuns* runs) {
  std::vector<int64_t> changes;  // numbers of pixels; in the end an even number in each column
  const size_t most = 4 * MostRuns(height, width);
  for (size_t i = 0; i < corners.size(); ++i) {
    const GridEdge edge(corners[i], corners[i + 1 == corners.size() ? 0 : i + 1]);
    for (int64_t x = FirstPixelFrom(edge.left()); x < width; ++x) {
      const int64_t column = kGridOfPixel * x + kGridMiddle;
      if (column >= edge.right()) break;
      const int64_t y = FirstPixelFrom(edge.CrossingAt(column));
      changes.push_back(x * height + std::min<int64_t>(y, height));
    }
    if (changes.size() > most) CancelPairs(&changes);
  }
  CancelPairs(&changes);
  for (size_t i = 0; i + 1 < changes.size(); i += 2) runs->push_back({changes[i], changes[i + 1]});
}

void AddCounts(std::span<const int64_t> counts, PixelRuns* runs) {
  int64_t pixel = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i % 2 == 1) runs->push_back({pixel, pixel + counts[i]});
    pixel += counts[i];
  }
}

std::optional<Refusal> ReadCounts(std::string_view text, std::vector<int64_t>* counts) {
  constexpr int kGroupBits = 5, kMostBits = 50;
  constexpr int64_t kGroup = 1 << kGroupBits, kSign = kGroup / 2;
  counts->clear();
  int64_t number = 0;
  int bits = 0;  // of this number so far
  for (const char character : text) {
    const int64_t group = character - '0';
    if (group < 0 || group >= 2 * kGroup)
      return Refusal{format("it has '{}', which is not in counts", EscapedBytes({&character, 1}))};
    if (bits >= kMostBits) return Refusal{"a number in it is too large"};
    number += (group % kGroup) << bits;
    bits += kGroupBits;
    if (group >= kGroup) continue;
    if (group & kSign) number -= int64_t{1} << bits;
    if (counts->size() > 2) number += (*counts)[counts->size() - 2];
    if (number < 0 || number >= int64_t{1} << kMostBits)
      return Refusal{format("count {} is {}", counts->size() + 1, number)};
    counts->push_back(number);
    number = 0, bits = 0;
  }
  if (bits > 0) return Refusal{"it ends within a number"};
  return std::nullopt;
}

}  // namespace mxtrain::io
