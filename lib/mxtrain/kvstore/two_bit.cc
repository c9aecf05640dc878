// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/two_bit.h"

#include <algorithm>
#include <cstring>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

constexpr int64_t kOfByte = 4, kOfWord = 16, kWordBytes = 4;
constexpr int64_t kWordsAtOnce = 256;  // what a loop keeps in the first cache
constexpr int64_t kGrainWords = 1024;  // for one thread
constexpr uint8_t kPlus = 3, kMinus = 2;

// One code per byte.
MXTRAIN_SIMD void Choose(const float* gradient, float* residual, int64_t n, float threshold,
                         uint8_t* codes) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float value = residual[i] + gradient[i];
    const bool plus = value >= threshold, minus = value <= -threshold;
    residual[i] = value - (plus ? threshold : minus ? -threshold : 0.0F);
    codes[i] = plus ? kPlus : minus ? kMinus : uint8_t{0};
  }
}

// Four codes to a byte. The product has their bits, c0 first, in its highest byte.
MXTRAIN_SIMD void Squeeze(const uint8_t* codes, int64_t bytes, uint8_t* packed) {
  constexpr uint32_t kGather = (1U << 30) | (1U << 20) | (1U << 10) | 1U;
  for (int64_t b = 0; b < bytes; ++b) {
    uint32_t four = 0;
    std::memcpy(&four, codes + b * kOfByte, sizeof four);
    packed[b] = static_cast<uint8_t>((four * kGather) >> 24);
  }
}

}  // namespace

TwoBit::TwoBit(float threshold) : threshold_(threshold) {
  for (size_t byte = 0; byte < values_.size(); ++byte) {
    for (size_t i = 0; i < kOfByte; ++i) {
      const size_t code = (byte >> (6 - 2 * i)) & 3;
      values_[byte][i] = code == kPlus ? threshold : code == kMinus ? -threshold : 0;
    }
  }
}

int64_t TwoBit::PackedBytes(int64_t n) {
  return CeilDivide(n, kOfWord) * kWordBytes;
}

void TwoBit::Pack(const float* gradient, float* residual, int64_t n, uint8_t* packed) const {
  ParallelFor(CeilDivide(n, kOfWord), kGrainWords, [&](int64_t begin, int64_t end) {
    std::array<uint8_t, kWordsAtOnce * kOfWord> codes;
    for (int64_t word = begin; word < end; word += kWordsAtOnce) {
      const int64_t words = std::min(kWordsAtOnce, end - word), at = word * kOfWord,
                    count = std::min(words * kOfWord, n - at);
      Choose(gradient + at, residual + at, count, threshold_, codes.data());
      std::fill(codes.begin() + count, codes.begin() + words * kOfWord, uint8_t{0});
      Squeeze(codes.data(), words * kWordBytes, packed + word * kWordBytes);
    }
  });
}

void TwoBit::Sum(const uint8_t* first, int64_t stride, int parts, int64_t n, float* sum) const {
  const auto add = [&](int64_t begin, int64_t bytes, int part) {
    const uint8_t* const packed = first + part * stride + begin;
    float* const to = sum + begin * kOfByte;
    for (int64_t b = 0; b < bytes; ++b) {
      const float* const values = values_[packed[b]].data();
      for (int64_t i = 0; i < kOfByte; ++i)
        to[b * kOfByte + i] = part == 0 ? values[i] : to[b * kOfByte + i] + values[i];
    }
  };
  const int64_t whole = n / kOfByte;
  ParallelFor(whole, kGrainWords * kWordBytes, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += kWordsAtOnce) {
      for (int part = 0; part < parts; ++part) add(b, std::min(kWordsAtOnce, end - b), part);
    }
  });
  for (int64_t i = whole * kOfByte; i < n; ++i) {
    sum[i] = 0;
    for (int part = 0; part < parts; ++part)
      sum[i] += values_[first[part * stride + whole]][static_cast<size_t>(i % kOfByte)];
  }
}

}  // namespace mxtrain
