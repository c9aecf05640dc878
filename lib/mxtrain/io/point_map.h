// SPDX-License-Identifier: Apache-2.0
#pragma once
// What transforms do to coordinates. All of them are affine.

namespace mxtrain::io {

// In pixels from the upper left corner of an image, so that the center of its first pixel is at
// (0.5, 0.5) and the image ends at (width, height).
struct Point {
  double x = 0, y = 0;
};

// From points of one image to those of another that is made of it:
//   x' = xx * x + xy * y + x0,  y' = yx * x + yy * y + y0
struct PointMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;

  Point operator()(const Point& p) const {
    return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0};
  }
  // This map, and `next` on its result.
  PointMap Then(const PointMap& next) const {
    return {next.xx * xx + next.xy * yx,           next.xx * xy + next.xy * yy,
            next.xx * x0 + next.xy * y0 + next.x0, next.yx * xx + next.yy * yx,
            next.yx * xy + next.yy * yy,           next.yx * x0 + next.yy * y0 + next.y0};
  }
  // The way back. An image that has lost an axis has none: then not finite.
  PointMap Inverse() const {
    const double d = xx * yy - xy * yx;
    return {yy / d, -xy / d, (xy * y0 - yy * x0) / d, -yx / d, xx / d, (yx * x0 - xx * y0) / d};
  }
  static PointMap Shift(double x, double y) { return {1, 0, x, 0, 1, y}; }
};

}  // namespace mxtrain::io
