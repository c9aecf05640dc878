// SPDX-License-Identifier: Apache-2.0
#pragma once
// Region proposals over a feature pyramid (Ren et al. 2015, "Faster R-CNN", arXiv 1506.01497; Lin
// et al. 2017, arXiv 1612.03144). Each level has an anchor of every ratio at each cell of its maps:
//
//   score   [N, ratios, H, W]     the logit of whether an object is there
//   offset  [N, 4 ratios, H, W]   of its box from the anchor (operator/box_offsets.h), four numbers
//                                 for each ratio
//
// The image is what the maps of the first level cover; the maps of level l have ceil(side /
// strides[l]) cells along each side of it. The anchors of the cell (y, x) are around (x w, y h), in
// pixels of the image as the net reads it, where w and h are the sides of the image over the cells
// along them, rounded down as torchvision does: strides[l] if that divides the sides. The area of
// an anchor is about sizes[l]^2 and its height ratio times its width; half its width and half its
// height are rounded to whole numbers, as there. The anchors of an image are numbered level by
// level, those of a level cell by cell in rows, and those of a cell as the ratios.
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/operator/anchors.h"
#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

inline constexpr int kMostPyramidLevels = 8, kMostAnchorRatios = 8;

// Parameters of operators over such maps, whose first arguments are the scores of each level, then
// the offsets of each.
struct PyramidFields {
  TShape strides;
  std::vector<double> sizes, ratios;

  template <typename P>
  static void DeclarePyramid(Fields<P>& f) {
    TShape P::*strides = &PyramidFields::strides;
    std::vector<double> P::*sizes = &PyramidFields::sizes;
    std::vector<double> P::*ratios = &PyramidFields::ratios;
    f.Add("strides", strides).Required().Help("pixels between the cells of each level");
    f.Add("sizes", sizes)
        .Required()
        .RangeAbove(0)
        .Help("of the anchors of each level: the square root of their area, in pixels");
    f.Add("ratios", ratios)
        .Default({0.5, 1, 2})
        .RangeAbove(0)
        .Help("of the anchors of a cell: height over width");
  }
  // Throws kConfig unless there are one to kMostPyramidLevels positive strides and as many sizes,
  // and one to kMostAnchorRatios ratios.
  MXTRAIN_API void CheckPyramid(const std::string& who) const;
  // score0, score1, ..., offset0, offset1, ...
  MXTRAIN_API std::vector<std::string> MapNames() const;
};

struct PyramidShape {
  int64_t images = TShape::kUnknown, anchors = TShape::kUnknown;  // anchors of an image
};
// Completes the shapes of those arguments, with what is known of the images besides; kUnknown what
// does not follow. Throws kConfig on a contradiction.
MXTRAIN_API PyramidShape UnifyPyramid(const PyramidFields& fields, const std::string& who,
                                      int64_t images, std::vector<TShape>* in);

// The maps of a batch; for kernels. Row i is anchor i % anchors of image i / anchors.
template <typename T>
struct PyramidMaps {
  using C = ComputeOf<T>;
  struct Level {
    T *scores, *offsets;
    int64_t first;  // number of its first anchor
    int64_t width, plane;
    C step_x, step_y;  // between anchors, in pixels
    C half_width[kMostAnchorRatios], half_height[kMostAnchorRatios];
  };
  Level level[kMostPyramidLevels];
  int levels = 0, ratios = 0;
  int64_t images = 0, anchors = 0;            // anchors of an image
  int64_t image_width = 0, image_height = 0;  // in pixels

  // `blobs`: the arguments, or their gradients.
  PyramidMaps(const PyramidFields& fields, std::span<const TBlob> blobs)
      : levels(fields.strides.ndim()),
        ratios(static_cast<int>(fields.ratios.size())),
        images(blobs[0].shape[0]),
        image_width(fields.strides[0] * blobs[0].shape[3]),
        image_height(fields.strides[0] * blobs[0].shape[2]) {
    for (int l = 0; l < levels; ++l) {
      const TBlob &scores = blobs[static_cast<size_t>(l)],
                  &offsets = blobs[static_cast<size_t>(levels + l)];
      const TShape& map = scores.shape;
      Level& own = level[l];
      own.scores = static_cast<T*>(scores.data);
      own.offsets = static_cast<T*>(offsets.data);
      own.first = anchors;
      own.width = map[3];
      own.plane = map[2] * map[3];
      own.step_x = static_cast<C>(image_width / map[3]);
      own.step_y = static_cast<C>(image_height / map[2]);
      for (int a = 0; a < ratios; ++a) {
        const double root = std::sqrt(fields.ratios[static_cast<size_t>(a)]),
                     size = fields.sizes[static_cast<size_t>(l)];
        own.half_width[a] = static_cast<C>(std::nearbyint(size / root / 2));
        own.half_height[a] = static_cast<C>(std::nearbyint(size * root / 2));
      }
      anchors += own.plane * ratios;
    }
  }

  MXTRAIN_HD int64_t rows() const { return images * anchors; }
  // Anchors of a level.
  MXTRAIN_HD int64_t CountOf(int l) const { return level[l].plane * ratios; }

  struct Place {
    int64_t image;
    int level;
    int64_t cell;
    int ratio;
  };
  MXTRAIN_HD int LevelOf(int64_t anchor) const {
    int l = levels - 1;
    while (anchor < level[l].first) --l;
    return l;
  }
  MXTRAIN_HD Place PlaceOf(int64_t row) const {
    const int64_t anchor = row % anchors;
    const int l = LevelOf(anchor);
    const int64_t in_level = anchor - level[l].first;
    return {row / anchors, l, in_level / ratios, static_cast<int>(in_level % ratios)};
  }
  MXTRAIN_HD int64_t ScoreIndex(const Place& at) const {
    return (at.image * ratios + at.ratio) * level[at.level].plane + at.cell;
  }
  MXTRAIN_HD int64_t OffsetIndex(const Place& at, int k) const {
    return ((at.image * ratios + at.ratio) * 4 + k) * level[at.level].plane + at.cell;
  }
  MXTRAIN_HD T RawScore(const Place& at) const { return level[at.level].scores[ScoreIndex(at)]; }
  MXTRAIN_HD C Score(const Place& at) const { return static_cast<C>(RawScore(at)); }
  MXTRAIN_HD C Offset(const Place& at, int k) const {
    return static_cast<C>(level[at.level].offsets[OffsetIndex(at, k)]);
  }
  MXTRAIN_HD CenteredBox<C> Anchor(const Place& at) const {
    const Level& own = level[at.level];
    return {static_cast<C>(at.cell % own.width) * own.step_x,
            static_cast<C>(at.cell / own.width) * own.step_y, C(2) * own.half_width[at.ratio],
            C(2) * own.half_height[at.ratio]};
  }
  MXTRAIN_HD Corners<C> AnchorCorners(const Place& at) const {
    const Level& own = level[at.level];
    const CenteredBox<C> box = Anchor(at);
    return {box.x - own.half_width[at.ratio], box.y - own.half_height[at.ratio],
            box.x + own.half_width[at.ratio], box.y + own.half_height[at.ratio]};
  }
};

}  // namespace mxtrain
