// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/boundary_f.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

constexpr int32_t kNone = -1;

struct Map {
  std::vector<int32_t> classes;  // of pixels of boundaries; kNone of the others
  int64_t height, width;
  int32_t At(int64_t y, int64_t x) const {
    return y < 0 || x < 0 || y >= height || x >= width
               ? kNone
               : classes[static_cast<size_t>(y * width + x)];
  }
};

Map BoundaryOf(const Map& map) {
  Map boundary{std::vector<int32_t>(map.classes.size(), kNone), map.height, map.width};
  for (int64_t y = 0; y < map.height; ++y) {
    for (int64_t x = 0; x < map.width; ++x) {
      const int32_t own = map.At(y, x);
      if (own == kNone) continue;
      for (const auto& [dy, dx] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
        const int32_t other = map.At(y + dy, x + dx);
        if (other != kNone && other != own)
          boundary.classes[static_cast<size_t>(y * map.width + x)] = own;
      }
    }
  }
  return boundary;
}

// Steps of at most `tolerance`, the shortest first: most pixels have a near one at once.
std::vector<std::pair<int, int>> StepsWithin(double tolerance) {
  std::vector<std::pair<int, int>> steps;
  const int reach = static_cast<int>(tolerance);
  const auto squared = [](std::pair<int, int> step) {
    return step.first * step.first + step.second * step.second;
  };
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int dx = -reach; dx <= reach; ++dx) {
      if (squared({dy, dx}) <= tolerance * tolerance) steps.emplace_back(dy, dx);
    }
  }
  std::ranges::stable_sort(steps, {}, squared);
  return steps;
}

// Adds the pixels of `from` to *all of their class, and to *met those near one of `to`.
void Match(const Map& from, const Map& to, const std::vector<std::pair<int, int>>& steps,
           int64_t BoundaryMatch::*all, int64_t BoundaryMatch::*met,
           std::vector<BoundaryMatch>* matches) {
  for (int64_t y = 0; y < from.height; ++y) {
    for (int64_t x = 0; x < from.width; ++x) {
      const int32_t own = from.At(y, x);
      if (own == kNone) continue;
      BoundaryMatch& match = (*matches)[static_cast<size_t>(own)];
      ++(match.*all);
      match.*met += std::ranges::any_of(
          steps, [&](const auto& step) { return to.At(y + step.first, x + step.second) == own; });
    }
  }
}

}  // namespace

double BoundaryMatch::F() const {
  if (labelled == 0) return std::numeric_limits<double>::quiet_NaN();
  if (guessed_met == 0 || labelled_met == 0) return 0;
  const double precision = static_cast<double>(guessed_met) / static_cast<double>(guessed),
               recall = static_cast<double>(labelled_met) / static_cast<double>(labelled);
  return 2 * precision * recall / (precision + recall);
}

std::vector<BoundaryMatch> MatchBoundaries(std::span<const int32_t> truth,
                                           std::span<const int32_t> guesses, int64_t height,
                                           int64_t width, int64_t classes, double tolerance) {
  MXTRAIN_ASSERT(std::ssize(truth) == height * width && truth.size() == guesses.size());
  Map labelled{std::vector<int32_t>(truth.size(), kNone), height, width}, guessed = labelled;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] < 0) continue;
    MXTRAIN_ASSERT(truth[i] < classes && guesses[i] < classes);
    labelled.classes[i] = truth[i];
    guessed.classes[i] = guesses[i];
  }
  labelled = BoundaryOf(labelled);
  guessed = BoundaryOf(guessed);
  const std::vector<std::pair<int, int>> steps = StepsWithin(tolerance);
  std::vector<BoundaryMatch> matches(static_cast<size_t>(classes));
  Match(labelled, guessed, steps, &BoundaryMatch::labelled, &BoundaryMatch::labelled_met, &matches);
  Match(guessed, labelled, steps, &BoundaryMatch::guessed, &BoundaryMatch::guessed_met, &matches);
  return matches;
}

double BoundaryTolerance(int64_t height, int64_t width) {
  return std::max(0.0075 * std::hypot(static_cast<double>(height), static_cast<double>(width)),
                  1.0);
}

}  // namespace mxtrain
