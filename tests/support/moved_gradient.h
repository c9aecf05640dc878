// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of an operator that only moves elements of its first input, for cases that are too
// large for central differences.
#include "tests/support/operator_case.h"

namespace mxtrain::test {

// Applied to the numbers of the elements (large ones, unlike constants that it may add) the
// operator tells where every element of its output comes from.
inline void UseMovedGradient(OperatorCase* c) {
  c->gradient = [forward = c->forward](const Arrays& in, const Arrays& aux, const Arrays& head) {
    constexpr double kFirst = 1e6;
    Arrays numbers = in, gradient;
    for (const Values& values : in) gradient.push_back(Values(values.size()));
    for (size_t i = 0; i < in[0].size(); ++i) numbers[0][i] = kFirst + static_cast<double>(i);
    const Arrays moved = forward(numbers, aux);
    for (size_t i = 0; i < head[0].size(); ++i) {
      const double number = moved[0][i] - kFirst;
      if (number >= 0) gradient[0][static_cast<size_t>(number)] += head[0][i];
    }
    return gradient;
  };
}

}  // namespace mxtrain::test
