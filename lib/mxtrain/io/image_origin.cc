// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_origin.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mxtrain::io {
namespace {

// The part of a convex polygon where `inside` is not negative, which is linear in the point
// (Sutherland and Hodgman 1974, "Reentrant Polygon Clipping").
template <typename Inside>
void Cut(std::vector<Point>* polygon, Inside&& inside) {
  if (std::ranges::all_of(*polygon, [&](const Point& p) { return inside(p) >= 0; })) return;
  std::vector<Point> kept;
  for (size_t i = 0; i < polygon->size(); ++i) {
    const Point &p = (*polygon)[i], &next = (*polygon)[(i + 1) % polygon->size()];
    const double here = inside(p), there = inside(next);
    if (here >= 0) kept.push_back(p);
    if ((here >= 0) == (there >= 0)) continue;
    const double t = here / (here - there);
    kept.push_back({p.x + t * (next.x - p.x), p.y + t * (next.y - p.y)});
  }
  *polygon = std::move(kept);
}

// Twice its area, negative if its corners are in the other direction.
double SignedArea(std::span<const Point> polygon) {
  double sum = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &p = polygon[i], &next = polygon[(i + 1) % polygon.size()];
    sum += p.x * next.y - next.x * p.y;
  }
  return sum;
}

}  // namespace

double AreaOf(std::span<const Point> polygon) {
  return std::abs(SignedArea(polygon)) / 2;
}

ImageOrigin::ImageOrigin(int height, int width) : height_(height), width_(width) {
  const double right = width, bottom = height;
  seen_ = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
}

ImageOrigin::Interval ImageOrigin::SeenAt(double y) const {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Interval interval{kFar, -kFar};
  const auto reach = [&interval](double x) {
    interval.first = std::min(interval.first, x);
    interval.last = std::max(interval.last, x);
  };
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Point &p = seen_[i], &next = seen_[(i + 1) % seen_.size()];
    if (std::min(p.y, next.y) > y || std::max(p.y, next.y) < y) continue;
    if (p.y != next.y) reach(p.x + (y - p.y) / (next.y - p.y) * (next.x - p.x));
    if (p.y == next.y) reach(p.x), reach(next.x);
  }
  return interval;
}

std::vector<Point> ImageOrigin::SeenPartOf(std::vector<Point> polygon) const {
  if (seen_.size() < 3) return {};
  const double direction = SignedArea(seen_) < 0 ? -1 : 1;  // a mirrored image turns it
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Point &from = seen_[i], &to = seen_[(i + 1) % seen_.size()];
    Cut(&polygon, [&](const Point& p) {
      return direction * ((to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x));
    });
  }
  return polygon;
}

void ImageOrigin::Moves(const PointMap& by) {
  map_ = map_.Then(by);
  for (Point& p : seen_) p = by(p);
}

void ImageOrigin::EndsAt(int height, int width) {
  const double right = width, bottom = height;
  Cut(&seen_, [](const Point& p) { return p.x; });
  Cut(&seen_, [](const Point& p) { return p.y; });
  Cut(&seen_, [right](const Point& p) { return right - p.x; });
  Cut(&seen_, [bottom](const Point& p) { return bottom - p.y; });
  // New corners are on the edges but for rounding: once they are, the same edges cut nothing again.
  for (Point& p : seen_) p = {std::clamp(p.x, 0.0, right), std::clamp(p.y, 0.0, bottom)};
}

}  // namespace mxtrain::io
