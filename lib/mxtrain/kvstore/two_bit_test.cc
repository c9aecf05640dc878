// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/two_bit.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::FloatVector;

// As MXNet defines it, value by value. What each value sends goes to `sent`.
std::vector<uint8_t> PackOneByOne(const FloatVector& gradient, float threshold,
                                  FloatVector* residual, FloatVector* sent) {
  std::vector<uint8_t> bytes((gradient.size() + 15) / 16 * 4);
  for (size_t i = 0; i < gradient.size(); ++i) {
    float& rest = (*residual)[i];
    rest += gradient[i];
    int code = 0;
    (*sent)[i] = 0;
    if (rest >= threshold) {
      code = 3;
      rest -= threshold;
      (*sent)[i] = threshold;
    } else if (rest <= -threshold) {
      code = 2;
      rest += threshold;
      (*sent)[i] = -threshold;
    }
    bytes[i / 4] = static_cast<uint8_t>(bytes[i / 4] | (code << (6 - 2 * static_cast<int>(i % 4))));
  }
  return bytes;
}

TEST_CASE("2-bit compression is MXNet's arithmetic, bit for bit") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.4F);
  for (int64_t n : {1, 3, 4, 15, 16, 17, 63, 64, 4096, 4097, 100003}) {
    for (float threshold : {0.5F, 0.1F}) {
      CAPTURE(n);
      const TwoBit two_bit(threshold);
      REQUIRE(TwoBit::PackedBytes(n) == (n + 15) / 16 * 4);
      FloatVector residual(static_cast<size_t>(n)), expected_residual = residual, sent = residual;
      for (int step = 0; step < 4; ++step) {
        FloatVector gradient(static_cast<size_t>(n));
        for (float& g : gradient) g = normal(random);
        gradient[0] = step % 2 == 0 ? threshold : -threshold;  // at the threshold it is sent
        std::vector<uint8_t> packed(static_cast<size_t>(TwoBit::PackedBytes(n)), 0xee);
        two_bit.Pack(gradient.data(), residual.data(), n, packed.data());
        CHECK(packed == PackOneByOne(gradient, threshold, &expected_residual, &sent));
        CHECK(residual == expected_residual);
        FloatVector back(static_cast<size_t>(n), 99);
        two_bit.Sum(packed.data(), 0, 1, n, back.data());
        CHECK(back == sent);
      }
    }
  }
}

TEST_CASE("packed values stand in the order of MXNet's words") {
  // The first value has the highest bits of the first byte.
  const FloatVector gradient = {1, -1, 0, 1, 0, 0, 0, 0, -1};
  FloatVector residual(gradient.size());
  std::vector<uint8_t> packed(4);
  TwoBit(1).Pack(gradient.data(), residual.data(), 9, packed.data());
  CHECK(packed == std::vector<uint8_t>{0b11'10'00'11, 0, 0b10'00'00'00, 0});
}

TEST_CASE("sums of packed gradients are added part by part") {
  constexpr int64_t kCount = 1000, kStride = 256, kParts = 5;
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  const TwoBit two_bit(0.3F);
  std::vector<uint8_t> packed(kStride * kParts);
  FloatVector expected(kCount), sent(kCount);
  for (int64_t part = 0; part < kParts; ++part) {
    FloatVector gradient(kCount), residual(kCount);
    for (float& g : gradient) g = normal(random);
    const std::vector<uint8_t> own = PackOneByOne(gradient, 0.3F, &residual, &sent);
    std::copy(own.begin(), own.end(), packed.begin() + part * kStride);
    for (size_t i = 0; i < sent.size(); ++i)
      expected[i] = part == 0 ? sent[i] : expected[i] + sent[i];
  }
  FloatVector sum(kCount, 7);
  two_bit.Sum(packed.data(), kStride, kParts, kCount, sum.data());
  CHECK(sum == expected);
}

TEST_CASE("a gradient that is not a number sends nothing and stays in the residual") {
  const FloatVector gradient = {std::numeric_limits<float>::quiet_NaN(), 1};
  FloatVector residual(2), sum(2);
  std::vector<uint8_t> packed(4);
  const TwoBit two_bit(1);
  two_bit.Pack(gradient.data(), residual.data(), 2, packed.data());
  two_bit.Sum(packed.data(), 4, 1, 2, sum.data());
  CHECK(sum == FloatVector{0, 1});
  CHECK(residual[0] != residual[0]);
}

}  // namespace
}  // namespace mxtrain
