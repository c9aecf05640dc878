// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a pure function of (seed, stream, step, index), so no result
// depends on threads, schedule or device.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

struct PhiloxBits {
  uint32_t v[4];
};

// `stream` and `step` select a sequence, `block` its 128-bit block.
MXTRAIN_HD inline PhiloxBits Philox(uint64_t seed, uint64_t stream, uint64_t step, uint64_t block) {
  uint32_t c[4] = {static_cast<uint32_t>(block),
                   static_cast<uint32_t>(block >> 32) ^ static_cast<uint32_t>(step >> 32),
                   static_cast<uint32_t>(step), static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(seed) ^ static_cast<uint32_t>(stream);
  uint32_t k1 =
      static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(stream >> 32) * 0x85ebca6bu;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c[0];
    const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<uint32_t>(p1);
    c[3] = static_cast<uint32_t>(p0);
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

// Uniform in [0, 1) with 24 bits, exactly representable in float.
MXTRAIN_HD inline float UniformFromBits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Element `index` of a stream.
MXTRAIN_HD inline uint32_t PhiloxAt(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index) {
  return Philox(seed, stream, step, index >> 2).v[index & 3];
}
MXTRAIN_HD inline float UniformAt(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index) {
  return UniformFromBits(PhiloxAt(seed, stream, step, index));
}
// Standard normal by Box-Muller, from the two halves of the block pair of `index`.
MXTRAIN_HD inline float NormalAt(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index) {
  const PhiloxBits b = Philox(seed, stream, step, index >> 1);
  const int half = static_cast<int>(index & 1) * 2;
  const double u1 = (static_cast<double>(b.v[half]) + 1.0) * 0x1p-32;  // in (0, 1]
  const double u2 = static_cast<double>(b.v[half + 1]) * 0x1p-32;
  return static_cast<float>(sqrt(-2.0 * log(u1)) * cos(6.283185307179586 * u2));
}

// The stream of a name (node, parameter): FNV-1a with a final mixer, the same on every machine.
inline uint64_t StreamOf(std::string_view name, uint64_t replica = 0) {
  uint64_t h = 0xcbf29ce484222325ull ^ (replica * 0x9e3779b97f4a7c15ull);
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

}  // namespace mxtrain
