// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/box_errors.h"

#include <algorithm>
#include <optional>

namespace mxtrain::tasks {
namespace {

constexpr double kAt = 0.5, kNear = 0.1;

bool Counts(const TrueBox& object) {
  return !object.crowd && !object.difficult;
}

// The object of the largest overlap among those that `take` says; nothing below `least`.
template <typename Take>
std::optional<size_t> Nearest(std::span<const TrueBox> truth, const FoundBox& box, double least,
                              Take&& take) {
  std::optional<size_t> nearest;
  double largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double overlap = take(i) ? IntersectionOverUnion(box, truth[i]) : 0;
    if (overlap < least || (nearest && overlap <= largest)) continue;
    nearest = i, largest = overlap;
  }
  return nearest;
}

}  // namespace

BoxErrors& BoxErrors::operator+=(const BoxErrors& more) {
  right += more.right, other += more.other, misplaced += more.misplaced, both += more.both;
  twice += more.twice, background += more.background, missed += more.missed;
  return *this;
}

BoxErrors ErrorsOf(std::span<const TrueBox> truth, std::span<const FoundBox> found,
                   BoxConfusion* confusion) {
  BoxErrors errors;
  std::vector<bool> taken(truth.size());  // by a box of its class
  std::vector<bool> seen(truth.size());   // by a box of any class
  const auto count = [confusion](size_t truth_class, size_t found_class) {
    if (confusion) ++(*confusion)[truth_class][found_class];
  };
  const size_t nothing = confusion ? confusion->size() - 1 : 0;
  const auto same = [&truth](size_t i, const FoundBox& box) { return truth[i].label == box.label; };
  for (const FoundBox& box : found) {
    const auto found_class = static_cast<size_t>(box.label);
    const auto own = Nearest(
        truth, box, kAt, [&](size_t i) { return Counts(truth[i]) && !taken[i] && same(i, box); });
    if (own) {
      ++errors.right;
      taken[*own] = seen[*own] = true;
      count(found_class, found_class);
      continue;
    }
    if (Nearest(truth, box, kAt, [&](size_t i) { return !Counts(truth[i]); })) continue;
    if (Nearest(truth, box, kAt, [&](size_t i) { return Counts(truth[i]) && same(i, box); })) {
      ++errors.twice;
      count(nothing, found_class);
      continue;
    }
    const auto foreign = Nearest(
        truth, box, kAt, [&](size_t i) { return Counts(truth[i]) && !same(i, box) && !seen[i]; });
    if (foreign) {
      ++errors.other;
      seen[*foreign] = true;
      count(static_cast<size_t>(truth[*foreign].label), found_class);
      continue;
    }
    count(nothing, found_class);
    if (Nearest(truth, box, kNear, [&](size_t i) { return Counts(truth[i]) && same(i, box); })) {
      ++errors.misplaced;
    } else if (Nearest(truth, box, kNear, [&](size_t i) { return Counts(truth[i]); })) {
      ++errors.both;
    } else {
      ++errors.background;
    }
  }
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!Counts(truth[i]) || taken[i] || seen[i]) continue;
    ++errors.missed;
    count(static_cast<size_t>(truth[i].label), nothing);
  }
  return errors;
}

}  // namespace mxtrain::tasks
