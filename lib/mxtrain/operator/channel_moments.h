// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sums from which mean and variance of each channel follow, as terms of SumChannels.
#include "mxtrain/operator/channel_sums.h"
#include "mxtrain/operator/two_sums.h"

namespace mxtrain {

// TwoSums of a few elements: in float, unless they are double. An error of 2^-24 of a few terms is
// less than that of narrow data, and double is slow on many GPUs.
template <typename A>
struct FewSums {
  A first, second;
  MXTRAIN_HD friend FewSums operator+(const FewSums& a, const FewSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
  MXTRAIN_HD operator TwoSums() const {
    return {static_cast<double>(first), static_cast<double>(second)};
  }
};

// Sums of the deviations from one element of the channel, and of their squares: numbers near the
// spread, whatever the mean.
template <typename T>
struct Distances {
  ChannelView view;
  const T* x;
  MXTRAIN_HD double Of(int64_t channel) const {
    return static_cast<double>(x[channel * view.inner]);
  }
  MXTRAIN_HD TwoSums operator()(int64_t place, double origin) const {
    return SumsOf(x[place], origin);
  }

  static constexpr int kPack = kPackOf<T> / 2;  // of fewer registers
  using Pack = ChannelPack<T, kPack>;
  bool Aligned() const { return TakesPacks(x); }
  MXTRAIN_HD Pack ReadPack(int64_t place) const { return Pack::At(x + place); }
  MXTRAIN_HD FewSums<AccumulatorOf<T>> Term(const Pack& pack, int k, double origin) const {
    using A = AccumulatorOf<T>;
    const A d = A(pack.v[k]) - static_cast<A>(origin);
    return {d, d * d};
  }

 private:
  MXTRAIN_HD static TwoSums SumsOf(T value, double origin) {
    const double d = static_cast<double>(value) - origin;
    return {d, d * d};
  }
};

// Sums of the elements of each channel, and of their squares.
template <typename T>
struct Powers : Distances<T> {
  MXTRAIN_HD double Of(int64_t) const { return 0; }
};

}  // namespace mxtrain
