// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boxes as offsets from anchors, which is how detectors with anchors learn them (Girshick et al.
// 2014, arXiv 1311.2524, appendix C). With the centers and sizes of a box (x, y, w, h) and of its
// anchor (xa, ya, wa, ha):
//
//   (x - xa) / wa,  (y - ya) / ha,  log(w / wa),  log(h / ha)
//
// Operators scale these four numbers by their variances, or means and standard deviations.
#include <string>
#include <vector>

#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain {

template <typename C>
struct CenteredBox {
  C x, y, width, height;
};
template <typename C>
MXTRAIN_HD CenteredBox<C> CenteredOf(const Corners<C>& box) {
  return {(box.left + box.right) / C(2), (box.top + box.bottom) / C(2), box.right - box.left,
          box.bottom - box.top};
}
template <typename T>
MXTRAIN_HD CenteredBox<ComputeOf<T>> ReadCentered(const T* box, int format) {
  using C = ComputeOf<T>;
  const C a = static_cast<C>(box[0]), b = static_cast<C>(box[1]), c = static_cast<C>(box[2]),
          d = static_cast<C>(box[3]);
  if (format == kBoxCenter) return {a, b, c, d};
  return CenteredOf(Corners<C>{a, b, c, d});
}

// One number for each of the four offsets, or the four offsets themselves.
template <typename C>
struct BoxNumbers {
  C at[4];
  MXTRAIN_HD C operator[](int k) const { return at[k]; }
};

template <typename C>
MXTRAIN_HD BoxNumbers<C> OffsetsOf(const CenteredBox<C>& box, const CenteredBox<C>& anchor) {
  return {{(box.x - anchor.x) / anchor.width, (box.y - anchor.y) / anchor.height,
           vector_math::Log(box.width / anchor.width),
           vector_math::Log(box.height / anchor.height)}};
}
template <typename C>
MXTRAIN_HD Corners<C> BoxAt(const BoxNumbers<C>& offsets, const CenteredBox<C>& anchor) {
  const C x = offsets[0] * anchor.width + anchor.x, y = offsets[1] * anchor.height + anchor.y,
          half_width = vector_math::Exp(offsets[2]) * anchor.width / C(2),
          half_height = vector_math::Exp(offsets[3]) * anchor.height / C(2);
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

// The parameter `variances`, as in MXNet.
template <typename P>
void DeclareVariances(Fields<P>& f, std::vector<double> P::*member, const char* help) {
  f.Add("variances", member).Default({0.1, 0.1, 0.2, 0.2}).RangeAbove(0).Help(help);
}
// Throws kConfig unless there are four.
inline void CheckVariances(const std::vector<double>& variances, const std::string& who) {
  if (variances.size() == 4) return;
  Throw(ErrorKind::kConfig, "{}: variances = {}: expected four numbers: of x, y, width and height",
        who, params::Print(variances));
}
template <typename C>
BoxNumbers<C> VariancesOf(const std::vector<double>& variances) {
  BoxNumbers<C> numbers{};
  for (size_t k = 0; k < 4; ++k) numbers.at[k] = static_cast<C>(variances[k]);
  return numbers;
}

}  // namespace mxtrain
