// SPDX-License-Identifier: Apache-2.0
#pragma once
// A random sample of the rows of each image, in which those of objects are at most a given share:
// of P rows of objects and B of the background of an image
//
//   p = min(P, floor(samples share)) and b = min(B, samples - p)
//
// are chosen with equal probabilities (Ren et al. 2015, arXiv 1506.01497, section 3.1.3). The rows
// of all images are ordered with one radix sort: those of objects, of the background, others, each
// by the draw of the row; then by image. The choice depends on the draws alone, so on the seed, the
// step and the node: not on the device or the number of threads.
#include <bit>
#include <cstdint>

#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/resource/random_state.h"

namespace mxtrain {

struct SampleRule {
  int64_t samples;  // of an image
  double share;     // of those of objects

  MXTRAIN_HD int64_t ObjectsOf(int64_t objects) const {
    const auto most = static_cast<int64_t>(static_cast<double>(samples) * share);
    return objects < most ? objects : most;
  }
  // Of so many rows of the background, beside `chosen` of objects.
  MXTRAIN_HD int64_t BackgroundOf(int64_t background, int64_t chosen) const {
    return background < samples - chosen ? background : samples - chosen;
  }
};

// How many rows of an image there are, and how many of them are chosen.
struct SampleCounts {
  int32_t objects, background, chosen_objects, chosen_background;
};

namespace detail {

// Not in the class: kernels of GPUs take no private types.
struct CountSample {
  const int32_t* roles;
  int64_t rows;
  SampleRule rule;
  SampleCounts* counts;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    int64_t objects = 0, background = 0;
    for (int64_t i = team.rank(); i < rows; i += team.size()) {
      const int32_t role = roles[image * rows + i];
      objects += role >= 0 ? 1 : 0;
      background += role == kBackground ? 1 : 0;
    }
    objects = team.Fold(objects, AddBoth{});
    background = team.Fold(background, AddBoth{});
    if (team.rank() != 0) return;
    const int64_t chosen = rule.ObjectsOf(objects);
    counts[image] = {static_cast<int32_t>(objects), static_cast<int32_t>(background),
                     static_cast<int32_t>(chosen),
                     static_cast<int32_t>(rule.BackgroundOf(background, chosen))};
  }
};
struct SampleKey {
  const int32_t* roles;
  RandomDraws draws;
  MXTRAIN_HD uint32_t operator()(int64_t i) const {
    if (roles[i] == kNothingLearnt) return ~uint32_t{0};
    const auto draw =
        static_cast<uint32_t>(draws.Uniform(static_cast<uint64_t>(i)) * float(1 << 24));
    return roles[i] >= 0 ? draw : draw | uint32_t{1} << 31;
  }
};
struct ImageOfRow {
  int64_t rows;
  MXTRAIN_HD uint32_t operator()(int64_t i) const { return static_cast<uint32_t>(i / rows); }
};

}  // namespace detail

// `roles`: [images, rows], the number of an object, kBackground or kNothingLearnt.
template <typename Device>
class BalancedSample {
 public:
  static int64_t Bytes(int64_t images, int64_t rows) {
    return CountBytes(images) + PositionOrder<uint32_t, Device>::Bytes(images * rows);
  }

  // `scratch`: Bytes, aligned to 8 bytes; the results are in it.
  BalancedSample(const Device& device, const int32_t* roles, int64_t images, int64_t rows,
                 SampleRule rule, RandomDraws draws, char* scratch)
      : counts_(reinterpret_cast<SampleCounts*>(scratch)),
        order_(device, images * rows, scratch + CountBytes(images)) {
    ForRows(device, images, rows, detail::CountSample{roles, rows, rule, counts_});
    order_.SortBy(detail::SampleKey{roles, draws}, 32);
    if (images > 1) {
      order_.SortBy(detail::ImageOfRow{rows},
                    static_cast<int>(std::bit_width(static_cast<uint64_t>(images - 1))));
    }
  }

  const SampleCounts* counts() const { return counts_; }  // [images]
  // [images, rows]: those of objects, then of the background; of either the chosen ones are first.
  const uint32_t* positions() const { return order_.positions(); }

 private:
  static int64_t CountBytes(int64_t images) {
    return RoundUp(images * static_cast<int64_t>(sizeof(SampleCounts)), 64);
  }

  SampleCounts* counts_;
  PositionOrder<uint32_t, Device> order_;
};

}  // namespace mxtrain
