// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/uniform_block.h"

#include <doctest/doctest.h>

namespace mxtrain {
namespace {

TEST_CASE("draws of a block are those of its indices") {
  float block[kUniformBlock];
  const RandomState early{1, 3}, late{0xfedcba9876543210u, uint64_t{1} << 40};
  for (const RandomDraws& draws : {RandomDraws{&early, 2}, RandomDraws{&late, StreamOf("drop")}}) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{4}, uint64_t{1000}, uint64_t{5} << 34}) {
      FillUniform(draws, first, block);
      for (uint64_t k = 0; k < kUniformBlock; ++k) CHECK(block[k] == draws.Uniform(first + k));
    }
  }
}

}  // namespace
}  // namespace mxtrain
