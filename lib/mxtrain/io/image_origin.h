// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the image of an example comes from, as transforms move it.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/point_map.h"

namespace mxtrain::io {

// An image in its file, what became of its points, and what of it is still seen. Not thread-safe.
class MXTRAIN_API ImageOrigin {
 public:
  ImageOrigin() = default;  // of an example without an image
  // An image as its file has it, shown upright.
  ImageOrigin(int height, int width);

  int height() const { return height_; }  // of the file; 0: no image
  int width() const { return width_; }
  // From points of the file to those of the image as it is now.
  const PointMap& map() const { return map_; }
  // The part of the image as it is now that shows pixels of the file: the corners of a convex
  // polygon, in order; fewer than three if nothing of it is seen. What lies outside is padding.
  std::span<const Point> seen() const { return seen_; }
  // From where to where this part reaches in x at height y; nothing (first > second) if it does not
  // come there.
  struct Interval {
    double first = 1, last = 0;
  };
  Interval SeenAt(double y) const;
  // The part of a convex polygon, its corners in order, in which pixels of the file are seen; empty
  // if there is none.
  std::vector<Point> SeenPartOf(std::vector<Point> polygon) const;

  void Moves(const PointMap& by);
  // From now on the image ends at (width, height); what was beyond is lost.
  void EndsAt(int height, int width);

 private:
  int height_ = 0, width_ = 0;
  PointMap map_;
  std::vector<Point> seen_;
};

// Of a polygon, its corners in order; 0 of fewer than three.
MXTRAIN_API double AreaOf(std::span<const Point> polygon);

// The image of an example that a chain runs on.
struct ImagePart {
  // False: a target, whose pixels are moved as those of the data and keep their values. Transforms
  // of values draw the same random numbers and do nothing.
  bool recolours = true;
  // If not null, every transform that moves pixels says there what it does to points.
  ImageOrigin* origin = nullptr;
  // If not null, the part of its file that the chain begins with.
  const Box* tile = nullptr;
  // The objects of the example, rows of `columns` numbers (boxes.h) in pixels of its file, for
  // transforms that look where objects are; with `origin`.
  std::span<const float> objects = {};
  int64_t columns = 0;

  void Moves(const PointMap& by) const {
    if (origin) origin->Moves(by);
  }
  void EndsAt(int height, int width) const {
    if (origin) origin->EndsAt(height, width);
  }
};

}  // namespace mxtrain::io
