// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/prediction.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {

bool IsFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

double UnsignedNan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

std::string TextOf(float value) {
  return std::isnan(value) ? "nan" : format("{}", value);
}

}  // namespace mxtrain::tasks
