// SPDX-License-Identifier: Apache-2.0
#pragma once
// The random numbers of one example in one epoch: a pure function of (seed, epoch, index),
// independent of threads and order. Draws for other purposes use another `name`.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "mxtrain/base/philox.h"

namespace mxtrain::io {

// A value: a copy draws the same numbers again.
class RandomStream {
 public:
  RandomStream(uint64_t seed, int64_t epoch, int64_t index, std::string_view name = "io.example")
      : seed_(seed),
        stream_(StreamOf(name, static_cast<uint64_t>(index))),
        step_(static_cast<uint64_t>(epoch)) {}

  float Uniform() { return UniformAt(seed_, stream_, step_, next_++); }  // [0, 1)
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // 0 .. count - 1, for a count of 1 .. 2^32.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(static_cast<uint64_t>(PhiloxAt(seed_, stream_, step_, next_++)) *
                                    static_cast<uint64_t>(count) >>
                                32);
  }
  // As if `count` numbers of Uniform or Below had been drawn.
  void Skip(int64_t count) { next_ += static_cast<uint64_t>(count); }
  bool Chance(double probability) { return Uniform() < probability; }
  // Standard normal (Box-Muller), of two uniform numbers.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - double{Uniform()}));
    return radius * std::cos(2 * std::numbers::pi * double{Uniform()});
  }

 private:
  uint64_t seed_, stream_, step_;
  uint64_t next_ = 0;
};

}  // namespace mxtrain::io
