// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/philox.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <set>

namespace mxtrain {
namespace {

using Words = std::array<uint32_t, 4>;

// The raw function of the paper, through the project's mapping of (seed, stream, step, block) to
// counter and key.
Words Raw(Words counter, uint32_t key0, uint32_t key1) {
  const uint64_t block = counter[0] | uint64_t{counter[1]} << 32;
  const uint64_t stream = uint64_t{counter[3]} << 32;
  const uint32_t mixed = counter[3] * 0x85ebca6bu;
  const PhiloxBits bits = Philox(key0 | uint64_t{key1 ^ mixed} << 32, stream, counter[2], block);
  return {bits.v[0], bits.v[1], bits.v[2], bits.v[3]};
}

TEST_CASE("Philox4x32-10 matches the published test vectors") {  // Random123 1.09, kat_vectors
  CHECK(Raw({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Raw({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Raw({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws have the moments of their distributions") {
  constexpr int kCount = 100000;
  double uniform = 0, uniform2 = 0, normal = 0, normal2 = 0, normal4 = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = UniformAt(7, StreamOf("conv1_weight"), 3, i),
                 n = NormalAt(7, StreamOf("conv1_weight"), 3, i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    uniform += u, uniform2 += u * u, normal += n, normal2 += n * n, normal4 += n * n * n * n;
  }
  CHECK(std::abs(uniform / kCount - 0.5) < 5 * std::sqrt(1.0 / 12 / kCount));
  CHECK(std::abs(uniform2 / kCount - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / kCount));
  CHECK(std::abs(normal / kCount) < 5 * std::sqrt(1.0 / kCount));
  CHECK(std::abs(normal2 / kCount - 1) < 5 * std::sqrt(2.0 / kCount));
  CHECK(std::abs(normal4 / kCount - 3) < 5 * std::sqrt(96.0 / kCount));
}

TEST_CASE("streams, steps, seeds and replicas differ") {
  std::set<uint32_t> first;
  for (uint64_t seed : {0, 1}) {
    for (const char* name : {"a", "b", "conv1_weight", "conv2_weight"}) {
      for (uint64_t replica : {0, 1}) {
        for (uint64_t step : {0, 1, 2})
          first.insert(PhiloxAt(seed, StreamOf(name, replica), step, 0));
      }
    }
  }
  CHECK(first.size() == 2 * 4 * 2 * 3);
}

}  // namespace
}  // namespace mxtrain
