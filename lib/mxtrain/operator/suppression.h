// SPDX-License-Identifier: Apache-2.0
#pragma once
// Greedy non-maximum suppression: of the boxes of an image, the best first, each suppresses the
// later ones of its class that it overlaps too much, unless it is suppressed itself. The boxes of
// all images are copied in that order, so that a box is compared with all later ones by one pass
// over contiguous numbers. An image is the work of a team: each of its threads has the boxes that
// it alone marks as suppressed, and asks the one whose box is next whether that is kept.
#include <algorithm>

#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

// The boxes of all images, those of an image by score.
template <typename C>
struct OrderedBoxes {
  C *left, *top, *right, *bottom, *area, *label;
  int32_t* lives;  // 0 if the box does not take part or is suppressed

  static constexpr int64_t kArrays = 6;
  static int64_t Bytes(int64_t rows) {
    return rows *
           (kArrays * static_cast<int64_t>(sizeof(C)) + static_cast<int64_t>(sizeof(int32_t)));
  }
  OrderedBoxes(void* scratch, int64_t rows) {
    C* next = static_cast<C*>(scratch);
    for (C** array : {&left, &top, &right, &bottom, &area, &label}) {
      *array = next;
      next += rows;
    }
    lives = reinterpret_cast<int32_t*>(next);
  }

  MXTRAIN_HD Corners<C> Box(int64_t i) const { return {left[i], top[i], right[i], bottom[i]}; }
  MXTRAIN_HD void Put(int64_t i, const Corners<C>& box, C label_of_box, bool takes_part) const {
    left[i] = box.left, top[i] = box.top, right[i] = box.right, bottom[i] = box.bottom;
    area[i] = box.Area();
    label[i] = label_of_box;
    lives[i] = takes_part;
  }
};

// How much is too much.
enum class Suppresses { kAbove, kFrom };  // an intersection over union above, or from, a threshold

template <Suppresses kWhen, typename C>
MXTRAIN_HD bool IsTooMuch(C common, C together, C threshold) {
  if constexpr (kWhen == Suppresses::kAbove) return common > threshold * together;
  return (common >= threshold * together) & (common > C(0));
}

// Of one image, by a team. `kept`: per image the rows that are kept, in their order, then -1.
template <Suppresses kWhen, typename C>
struct SuppressImage {
  int64_t boxes;  // of an image
  OrderedBoxes<C> at;
  C threshold;
  const uint32_t* order;  // the row of each box, numbered through all images
  int32_t* kept;          // null: not wanted

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    const int64_t first = image * boxes;
    int64_t count = 0;
    for (int64_t i = 0; i < boxes; ++i) {
      const bool own = i % team.size() == team.rank();
      if (team.Fold(own ? at.lives[first + i] : 0, LargerOf{}) == 0) continue;
      if (kept && team.rank() == 0)
        kept[first + count] = static_cast<int32_t>(static_cast<int64_t>(order[first + i]) - first);
      ++count;
      for (int64_t j = i - i % team.size() + team.rank(); j < boxes; j += team.size()) {
        if (j > i && Suppress(first + i, first + j)) at.lives[first + j] = 0;
      }
    }
    if (!kept) return;
    for (int64_t k = count + team.rank(); k < boxes; k += team.size()) kept[first + k] = -1;
  }
  // Whether box i suppresses box j.
  MXTRAIN_HD bool Suppress(int64_t i, int64_t j) const {
    const C common = IntersectionArea(at.Box(i), at.Box(j));
    return at.label[i] == at.label[j] &&
           IsTooMuch<kWhen>(common, at.area[i] + at.area[j] - common, threshold);
  }
};

namespace detail {

// The same for one thread, which compares a box with many at once.
template <Suppresses kWhen, typename C>
MXTRAIN_SIMD void SuppressLater(const OrderedBoxes<C>& at, int64_t i, int64_t end, C threshold) {
  const C left = at.left[i], top = at.top[i], right = at.right[i], bottom = at.bottom[i],
          area = at.area[i], label = at.label[i];
#pragma GCC ivdep
  for (int64_t j = i + 1; j < end; ++j) {
    const C common = IntersectionArea<C>({left, top, right, bottom},
                                         {at.left[j], at.top[j], at.right[j], at.bottom[j]});
    const bool suppressed =
        (label == at.label[j]) & IsTooMuch<kWhen>(common, area + at.area[j] - common, threshold);
    at.lives[j] = suppressed ? 0 : at.lives[j];
  }
}
template <Suppresses kWhen, typename C>
void SuppressOnHost(const SuppressImage<kWhen, C>& body, int64_t images) {
  ParallelFor(images, 1, [&body](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      const int64_t first = image * body.boxes, last = first + body.boxes;
      int64_t living = last;  // those that do not take part are behind the others
      while (living > first && body.at.lives[living - 1] == 0) --living;
      int32_t* kept = body.kept ? body.kept + first : nullptr;
      for (int64_t i = first; i < living; ++i) {
        if (body.at.lives[i] == 0) continue;
        if (kept) *kept++ = static_cast<int32_t>(static_cast<int64_t>(body.order[i]) - first);
        SuppressLater<kWhen>(body.at, i, living, body.threshold);
      }
      if (kept) std::fill(kept, body.kept + last, -1);
    }
  });
}

}  // namespace detail

// at.lives of all images: 1 of boxes that are kept.
template <typename Device, Suppresses kWhen, typename C>
void SuppressBoxes(const Device& device, int64_t images, const SuppressImage<kWhen, C>& body) {
  if constexpr (Device::kType == DeviceType::kCPU) {
    detail::SuppressOnHost(body, images);
  } else {
    ForRows(device, images, body.boxes, body);
  }
}

}  // namespace mxtrain
