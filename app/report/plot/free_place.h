// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a text stands that nothing may cross.
#include <optional>
#include <utility>
#include <vector>

namespace mxtrain::plot {

// The middle of an interval of length `width` within [left, right] that meets none of `taken`
// (from, to), as near to the middle of [left, right] as there is one.
std::optional<double> FreePlace(double left, double right, double width,
                                std::vector<std::pair<double, double>> taken);

}  // namespace mxtrain::plot
