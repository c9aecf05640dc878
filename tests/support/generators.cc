// SPDX-License-Identifier: Apache-2.0
#include "tests/support/generators.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace mxtrain::test {
namespace {

Values Draw(int64_t size, uint64_t seed, const std::function<double(std::mt19937_64&)>& draw) {
  std::mt19937_64 random(seed);
  Values values(static_cast<size_t>(size));
  for (double& v : values) v = draw(random);
  return values;
}

}  // namespace

Generator Uniform(double low, double high) {
  return UniformAwayFrom(low, high, {});
}

Generator UniformAwayFrom(double low, double high, std::vector<double> kinks, double margin) {
  return [=](int64_t size, uint64_t seed) {
    std::uniform_real_distribution<double> uniform(low, high);
    return Draw(size, seed, [&](std::mt19937_64& random) {
      for (;;) {
        const double v = uniform(random);
        if (std::none_of(kinks.begin(), kinks.end(),
                         [&](double kink) { return std::abs(v - kink) < margin; }))
          return v;
      }
    });
  };
}

Generator Distinct(double low, double high) {
  return [=](int64_t size, uint64_t seed) {
    Values values(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      values[i] = low + (high - low) * (static_cast<double>(i) + 0.5) / static_cast<double>(size);
    std::mt19937_64 random(seed);
    std::shuffle(values.begin(), values.end(), random);
    return values;
  };
}

Generator Labels(int64_t count) {
  return [=](int64_t size, uint64_t seed) {
    std::uniform_int_distribution<int64_t> uniform(0, count - 1);
    return Draw(size, seed,
                [&](std::mt19937_64& random) { return static_cast<double>(uniform(random)); });
  };
}

Generator Cycle(Values values) {
  return [values = std::move(values)](int64_t size, uint64_t) {
    Values result(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) result[i] = values[static_cast<size_t>(i) % values.size()];
    return result;
  };
}

Generator Constant(double value) {
  return Cycle({value});
}

}  // namespace mxtrain::test
