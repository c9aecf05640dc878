// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boxes in arrays: four numbers each, corners (left, top, right, bottom) or center and size
// (x, y, width, height).
#include <algorithm>
#include <string>

#include "mxtrain/base/params.h"
#include "mxtrain/operator/elementwise.h"

namespace mxtrain {

enum BoxFormat : int { kBoxCorner, kBoxCenter };

// An enum field of a parameter struct, as in MXNet.
template <typename P>
void DeclareBoxFormat(Fields<P>& f, const char* name, int P::*member, const char* help,
                      int standard = kBoxCorner) {
  f.Add(name, member)
      .Enum({{"corner", kBoxCorner}, {"center", kBoxCenter}})
      .Default(standard)
      .Help(help);
}

template <typename C>
struct Corners {
  C left, top, right, bottom;

  // 0 if a corner is on the wrong side.
  MXTRAIN_HD C Area() const { return Extent(right - left) * Extent(bottom - top); }
  MXTRAIN_HD static C Extent(C length) { return length > C(0) ? length : C(0); }
};

template <typename T>
MXTRAIN_HD Corners<ComputeOf<T>> ReadBox(const T* box, int format) {
  using C = ComputeOf<T>;
  const C a = static_cast<C>(box[0]), b = static_cast<C>(box[1]), c = static_cast<C>(box[2]),
          d = static_cast<C>(box[3]);
  if (format == kBoxCorner) return {a, b, c, d};
  return {a - c / C(2), b - d / C(2), a + c / C(2), b + d / C(2)};
}

template <typename C>
MXTRAIN_HD C IntersectionArea(const Corners<C>& a, const Corners<C>& b) {
  const C left = a.left > b.left ? a.left : b.left, top = a.top > b.top ? a.top : b.top,
          right = a.right < b.right ? a.right : b.right,
          bottom = a.bottom < b.bottom ? a.bottom : b.bottom;
  return Corners<C>{left, top, right, bottom}.Area();
}
// 0 of boxes without an area in common.
template <typename C>
MXTRAIN_HD C IntersectionOverUnion(const Corners<C>& a, const Corners<C>& b) {
  const C common = IntersectionArea(a, b);
  return common > C(0) ? common / (a.Area() + b.Area() - common) : C(0);
}

}  // namespace mxtrain
