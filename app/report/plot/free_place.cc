// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/free_place.h"

#include <algorithm>
#include <cmath>

namespace mxtrain::plot {

std::optional<double> FreePlace(double left, double right, double width,
                                std::vector<std::pair<double, double>> taken) {
  std::ranges::sort(taken);
  taken.emplace_back(right, right);
  const double middle = (left + right) / 2;
  std::optional<double> best;
  double free = left;  // so far
  for (const auto& [from, to] : taken) {
    const double end = std::min(from, right);
    if (end - free >= width) {
      const double at = std::clamp(middle, free + width / 2, end - width / 2);
      if (!best || std::abs(at - middle) < std::abs(*best - middle)) best = at;
    }
    free = std::max(free, to);
  }
  return best;
}

}  // namespace mxtrain::plot
