// SPDX-License-Identifier: Apache-2.0
#pragma once
// What transforms do to coordinates: affine maps, and perspective, which keeps lines straight.

namespace mxtrain::io {

// In pixels from the upper left corner of an image, so that the center of its first pixel is at
// (0.5, 0.5) and the image ends at (width, height).
struct Point {
  double x = 0, y = 0;
};

// From points of one image to those of another that is made of it:
//   x' = (xx * x + xy * y + x0) / w,  y' = (yx * x + yy * y + y0) / w,  w = zx * x + zy * y + z
// An affine map has w = 1. Others have w > 0 in the image.
struct PointMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
  double zx = 0, zy = 0, z = 1;

  bool is_affine() const { return zx == 0 && zy == 0 && z == 1; }
  Point operator()(const Point& p) const {
    const Point moved{xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0};
    if (is_affine()) return moved;
    const double w = zx * p.x + zy * p.y + z;
    return {moved.x / w, moved.y / w};
  }
  // This map, and `next` on its result.
  PointMap Then(const PointMap& next) const {
    PointMap both{next.xx * xx + next.xy * yx,           next.xx * xy + next.xy * yy,
                  next.xx * x0 + next.xy * y0 + next.x0, next.yx * xx + next.yy * yx,
                  next.yx * xy + next.yy * yy,           next.yx * x0 + next.yy * y0 + next.y0};
    if (is_affine() && next.is_affine()) return both;
    both.xx += next.x0 * zx, both.xy += next.x0 * zy, both.x0 += next.x0 * (z - 1);
    both.yx += next.y0 * zx, both.yy += next.y0 * zy, both.y0 += next.y0 * (z - 1);
    both.zx = next.zx * xx + next.zy * yx + next.z * zx;
    both.zy = next.zx * xy + next.zy * yy + next.z * zy;
    both.z = next.zx * x0 + next.zy * y0 + next.z * z;
    return both;
  }
  // The way back. An image that has lost an axis has none: then not finite.
  PointMap Inverse() const {
    if (is_affine()) {
      const double d = xx * yy - xy * yx;
      return {yy / d, -xy / d, (xy * y0 - yy * x0) / d, -yx / d, xx / d, (yx * x0 - xx * y0) / d};
    }
    // The adjugate, over its last number so that w is about 1.
    const double d = xx * yy - xy * yx;
    return {(yy * z - y0 * zy) / d,  (x0 * zy - xy * z) / d,  (xy * y0 - x0 * yy) / d,
            (y0 * zx - yx * z) / d,  (xx * z - x0 * zx) / d,  (x0 * yx - xx * y0) / d,
            (yx * zy - yy * zx) / d, (xy * zx - xx * zy) / d, 1};
  }
  static PointMap Shift(double x, double y) { return {1, 0, x, 0, 1, y}; }
};

}  // namespace mxtrain::io
