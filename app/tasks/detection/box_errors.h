// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is wrong with the boxes found in an image, by kind (Bolya et al. 2020, "TIDE", arXiv
// 2008.08115), at one score.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/metric/box_scores.h"

namespace mxtrain::tasks {

struct BoxErrors {
  int64_t right = 0;       // at the place of an object (IoU of at least 0.5), of its class
  int64_t other = 0;       // at the place of an object, of another class
  int64_t misplaced = 0;   // near an object of its class (IoU from 0.1 to 0.5)
  int64_t both = 0;        // near an object of another class
  int64_t twice = 0;       // of an object that a better box has found
  int64_t background = 0;  // at no object
  int64_t missed = 0;      // objects that no box is at

  int64_t found() const { return right + other + misplaced + both + twice + background; }
  BoxErrors& operator+=(const BoxErrors& more);
};

// [true class][found class] of boxes at places of objects; the last row and column: no object, no
// box.
using BoxConfusion = std::vector<std::vector<int64_t>>;

// Of one image; `found` with the best score first. Objects that do not count (crowds, difficult
// ones) make their boxes count neither. Adds to *confusion, if it is not null.
BoxErrors ErrorsOf(std::span<const TrueBox> truth, std::span<const FoundBox> found,
                   BoxConfusion* confusion);

}  // namespace mxtrain::tasks
