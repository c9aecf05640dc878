// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generators of test arrays. A generator is a pure function of the size and a seed, so every run of
// a test gets the same numbers.
#include <cstdint>
#include <functional>
#include <vector>

namespace mxtrain::test {

using Values = std::vector<double>;  // one array, row-major, for any element type
using Generator = std::function<Values(int64_t size, uint64_t seed)>;

Generator Uniform(double low, double high);
// Uniform in [low, high], but not within `margin` of a point of `kinks`, so that central
// differences do not straddle them.
Generator UniformAwayFrom(double low, double high, std::vector<double> kinks, double margin = 0.01);
// Evenly spaced over [low, high] in random order: no ties, so maxima keep their places under small
// changes.
Generator Distinct(double low, double high);
// Integers 0 .. count - 1.
Generator Labels(int64_t count);
// These values, repeated as often as needed.
Generator Cycle(Values values);
Generator Constant(double value);

}  // namespace mxtrain::test
