// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/uniform_block.h"

namespace mxtrain {
namespace {

constexpr int kBlocks = kUniformBlock / 4;

// Philox (base/philox.h) of consecutive blocks, round by round for all of them, which vectorizes.
MXTRAIN_SIMD void PhiloxBlocks(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first,
                               float* to) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    const uint64_t block = first + static_cast<uint64_t>(b);
    c0[b] = static_cast<uint32_t>(block);
    c1[b] = static_cast<uint32_t>(block >> 32) ^ static_cast<uint32_t>(step >> 32);
    c2[b] = static_cast<uint32_t>(step);
    c3[b] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed) ^ static_cast<uint32_t>(stream);
  uint32_t k1 =
      static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(stream >> 32) * 0x85ebca6bu;
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b], p1 = uint64_t{0xCD9E8D57u} * c2[b];
      c0[b] = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      c2[b] = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < kBlocks; ++b) {
    to[4 * b] = UniformFromBits(c0[b]);
    to[4 * b + 1] = UniformFromBits(c1[b]);
    to[4 * b + 2] = UniformFromBits(c2[b]);
    to[4 * b + 3] = UniformFromBits(c3[b]);
  }
}

}  // namespace

void FillUniform(const RandomDraws& draws, uint64_t first, float* to) {
  PhiloxBlocks(draws.state->seed, draws.stream, draws.state->step, first / 4, to);
}

}  // namespace mxtrain
