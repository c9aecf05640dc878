// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which object a box is to find, by overlap; for kernels.
#include "mxtrain/operator/labelled_objects.h"

namespace mxtrain {

// The object that a box overlaps most, the first of equal ones; -1: it overlaps none that is
// learnt.
template <typename C>
struct BestObject {
  C overlap = C(0);
  int32_t object = kBackground;
};

template <typename T, typename C = ComputeOf<T>>
MXTRAIN_HD BestObject<C> BestObjectOf(const LabelledObjects<T>& objects, int64_t image,
                                      const Corners<C>& box) {
  BestObject<C> best;
  typename LabelledObjects<T>::Object object;
  for (int64_t m = 0; m < objects.most; ++m) {
    if (!objects.Get(image, m, &object) || !object.learnt) continue;
    const C overlap = IntersectionOverUnion(box, object.box);
    if (overlap > best.overlap) best = {overlap, static_cast<int32_t>(m)};
  }
  return best;
}

// From which overlaps a box is to find its object, and below which it is of the background; between
// them nothing is learnt.
template <typename C>
struct MatchRule {
  C foreground, background;
};
// kNothingLearnt also in place of the background where a share of at least `foreground` of the box
// is in an object that nothing is to be learnt of.
template <typename T, typename C = ComputeOf<T>>
MXTRAIN_HD int32_t RoleOf(const LabelledObjects<T>& objects, int64_t image, const Corners<C>& box,
                          const BestObject<C>& best, const MatchRule<C>& rule) {
  if (best.object >= 0 && best.overlap >= rule.foreground) return best.object;
  if (best.overlap >= rule.background) return kNothingLearnt;
  typename LabelledObjects<T>::Object object;
  for (int64_t m = 0; m < objects.most; ++m) {
    if (objects.Get(image, m, &object) && !object.learnt &&
        IntersectionArea(box, object.box) >= rule.foreground * box.Area())
      return kNothingLearnt;
  }
  return kBackground;
}

// Smooth L1 of torchvision: x^2 / (2 beta) for |x| < beta, else |x| - beta / 2.
template <typename C>
MXTRAIN_HD C SmoothL1Of(C x, C beta) {
  const C size = x < C(0) ? -x : x;
  return size < beta ? x * x / (C(2) * beta) : size - beta / C(2);
}
template <typename C>
MXTRAIN_HD C SmoothL1Slope(C x, C beta) {
  return x >= beta ? C(1) : x <= -beta ? C(-1) : x / beta;
}

}  // namespace mxtrain
