// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detection without anchors: a net says for each point of several grids over an image how likely an
// object of each class is there, and where its box is.
//
// Level l has a point in the middle of each square of strides[l] pixels: of maps [N, C, H, W] the
// cell (y, x) is of the point ((x + 0.5) stride, (y + 0.5) stride), in pixels from the upper left
// corner of the image as the net reads it. Of each level there are the maps of one of three forms.
// kDistances (Tian et al. 2019, "FCOS", arXiv 1904.01355):
//   score [N, classes, H, W]   the logit of each class
//   side  [N, 4, H, W]         of left, top, right, bottom: the logarithm of the distance from the
//                              point, in strides
// kDistributions (Li et al. 2020, "Generalized Focal Loss", arXiv 2006.04388):
//   score [N, classes, H, W]   the logit of each class
//   side  [N, 4 bins, H, W]    of left, top, right, bottom: the logits of a distribution of the
//                              distance over 0, 1, ..., bins - 1 strides, whose mean it is
// kCenters (Ge et al. 2021, "YOLOX", arXiv 2107.08430):
//   score      [N, classes, H, W]   the logit of each class, of an object that is there
//   box        [N, 4, H, W]         of its centre x and y: how far right of and below the upper
//   left
//                                   corner of the square; the logarithms of width and height; all
//                                   in strides
//   objectness [N, 1, H, W]         the logit of whether an object is there
// The points of an image are numbered level by level, in rows.
#include <algorithm>
#include <string>
#include <vector>

#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/dual.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

inline constexpr int kMostPointLevels = 8;

enum PointForm : int { kDistances, kCenters, kDistributions };

// The parameter `strides` of operators over such maps, whose first arguments are the first map of
// each level, then the second of each, and so on.
template <typename P>
void DeclareStrides(Fields<P>& f, TShape P::*member) {
  f.Add("strides", member).Required().Help("pixels between the points of each level");
}
// Throws kConfig unless they are 1 to kMostPointLevels positive numbers.
MXTRAIN_API void CheckStrides(const TShape& strides, const std::string& who);
// Names of those arguments: score0, score1, ..., side0, side1, ...
MXTRAIN_API std::vector<std::string> PointMapNames(const TShape& strides, int form = kDistances);

struct PointGridShape {
  int64_t images = TShape::kUnknown, classes = TShape::kUnknown, points = TShape::kUnknown;
};
// Completes the shapes of those arguments; kUnknown what does not follow. `bins`: numbers of a
// side. Throws kConfig on a contradiction.
MXTRAIN_API PointGridShape UnifyPointMaps(const TShape& strides, const std::string& who,
                                          std::vector<TShape>* in, int form = kDistances,
                                          int64_t bins = 1);

// The parameter `bins` of operators over maps of distances; 0: their logarithms, else distributions
// over so many.
inline constexpr int kMostBins = 64;
template <typename P>
void DeclareBins(Fields<P>& f, int P::*member) {
  f.Add("bins", member)
      .Default(0)
      .Range(0, kMostBins)
      .Help(
          "0: maps of sides say the logarithms of distances; else the logits of distributions over "
          "0 to so many less one strides");
}
// kDistances or kDistributions. Throws kConfig for a distribution over one number.
MXTRAIN_API int FormOfBins(int bins, const std::string& who);

// The maps of a batch; for kernels.
template <typename T>
struct PointMaps {
  using C = ComputeOf<T>;
  struct Level {
    T *scores, *sides, *objectness;  // `sides`: the numbers of a box; the last null without
    int64_t first;                   // number of its first point
    int64_t width, plane;
    C stride;
  };
  Level level[kMostPointLevels];
  int form, levels = 0;
  int64_t classes = 0, points = 0, bins = 1;  // numbers of a side

  // `blobs`: the arguments; as many as there are levels, for each map.
  PointMaps(const TShape& strides, std::span<const TBlob> blobs, int its_form = kDistances)
      : form(its_form), levels(strides.ndim()) {
    for (int l = 0; l < levels; ++l) {
      const auto blob = [&](int map) { return blobs[static_cast<size_t>(map * levels + l)]; };
      const TShape map = blob(0).shape;
      classes = map[1];
      bins = blob(1).shape[1] / 4;
      level[l] = {static_cast<T*>(blob(0).data),
                  static_cast<T*>(blob(1).data),
                  form == kCenters ? static_cast<T*>(blob(2).data) : nullptr,
                  points,
                  map[3],
                  map[2] * map[3],
                  static_cast<C>(strides[l])};
      points += level[l].plane;
    }
  }

  // Of the image, in pixels: what the first grid covers.
  struct Size {
    C width, height;
  };
  MXTRAIN_HD Size Extent() const {
    const Level& first = level[0];
    return {static_cast<C>(first.width) * first.stride,
            static_cast<C>(first.plane / first.width) * first.stride};
  }
  struct Place {
    int level;
    int64_t cell;
    C x, y;
  };
  MXTRAIN_HD Place PlaceOf(int64_t point) const {
    int l = levels - 1;
    while (point < level[l].first) --l;
    const int64_t cell = point - level[l].first;
    const int64_t row = cell / level[l].width, column = cell % level[l].width;
    return {l, cell, (static_cast<C>(column) + C(0.5)) * level[l].stride,
            (static_cast<C>(row) + C(0.5)) * level[l].stride};
  }
  MXTRAIN_HD int64_t ScoreIndex(int64_t image, const Place& at, int64_t k) const {
    return (image * classes + k) * level[at.level].plane + at.cell;
  }
  MXTRAIN_HD C Score(int64_t image, const Place& at, int64_t k) const {
    return static_cast<C>(level[at.level].scores[ScoreIndex(image, at, k)]);
  }
  MXTRAIN_HD int64_t ObjectnessIndex(int64_t image, const Place& at) const {
    return image * level[at.level].plane + at.cell;
  }
  MXTRAIN_HD C Objectness(int64_t image, const Place& at) const {
    return static_cast<C>(level[at.level].objectness[ObjectnessIndex(image, at)]);
  }
  MXTRAIN_HD int64_t SideIndex(int64_t image, const Place& at, int side, int64_t bin = 0) const {
    return ((image * 4 + side) * bins + bin) * level[at.level].plane + at.cell;
  }
  // Far above every distance in an image; its exponential is finite.
  static constexpr C kMostLogDistance = C(20);
  MXTRAIN_HD static C Limited(C log_distance) {
    return log_distance > kMostLogDistance ? kMostLogDistance : log_distance;
  }
  MXTRAIN_HD C RawSide(int64_t image, const Place& at, int side, int64_t bin = 0) const {
    return static_cast<C>(level[at.level].sides[SideIndex(image, at, side, bin)]);
  }
  // Of kDistributions: what the probabilities of a side are made of, exp(logit - largest) / sum.
  struct Distribution {
    C largest, sum, mean;
    MXTRAIN_HD C Probability(C logit) const { return vector_math::Exp(logit - largest) / sum; }
    MXTRAIN_HD C MinusLog(C logit) const { return vector_math::Log(sum) + largest - logit; }
  };
  MXTRAIN_HD Distribution DistributionOf(int64_t image, const Place& at, int side) const {
    Distribution d{RawSide(image, at, side), C(0), C(0)};
    for (int64_t b = 1; b < bins; ++b) {
      const C logit = RawSide(image, at, side, b);
      d.largest = logit > d.largest ? logit : d.largest;
    }
    for (int64_t b = 0; b < bins; ++b) {
      const C part = vector_math::Exp(RawSide(image, at, side, b) - d.largest);
      d.sum += part;
      d.mean += part * static_cast<C>(b);
    }
    d.mean /= d.sum;
    return d;
  }
  MXTRAIN_HD C Side(int64_t image, const Place& at, int side) const {
    if (form == kDistributions) return DistributionOf(image, at, side).mean;
    const C raw = RawSide(image, at, side);
    return form == kCenters && side < 2 ? raw : Limited(raw);
  }
  // The box of the four numbers of a map, which may be dual numbers.
  template <typename V>
  MXTRAIN_HD Corners<V> BoxOf(const Place& at, V a, V b, V c, V d) const {
    const V stride = V(level[at.level].stride), x = V(at.x), y = V(at.y);
    if (form == kCenters) {
      const V middle_x = x + (a - V(0.5)) * stride, middle_y = y + (b - V(0.5)) * stride,
              half_width = stride * vector_math::Exp(c) * V(0.5),
              half_height = stride * vector_math::Exp(d) * V(0.5);
      return {middle_x - half_width, middle_y - half_height, middle_x + half_width,
              middle_y + half_height};
    }
    if (form == kDistributions)
      return {x - stride * a, y - stride * b, x + stride * c, y + stride * d};
    return {x - stride * vector_math::Exp(a), y - stride * vector_math::Exp(b),
            x + stride * vector_math::Exp(c), y + stride * vector_math::Exp(d)};
  }
  MXTRAIN_HD Corners<C> Box(int64_t image, const Place& at) const {
    return BoxOf(at, Side(image, at, 0), Side(image, at, 1), Side(image, at, 2),
                 Side(image, at, 3));
  }
};

}  // namespace mxtrain
