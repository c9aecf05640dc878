// SPDX-License-Identifier: Apache-2.0
#pragma once
// Taps: which elements of an axis an output coordinate reads, and with which weights; for host and
// device. resample.h computes with two of them, one per axis of an image. Positions are computed
// with integers, so both devices read the same elements with the same weights.
//
//   struct Taps {
//     int64_t in, out;  // lengths of the axis before and after
//     // Output o reads inputs [First(o), Last(o)). Neither decreases with o.
//     int64_t First(int64_t o) const;
//     int64_t Last(int64_t o) const;
//     // Outputs [FirstReader(i), LastReader(i)) read input i.
//     int64_t FirstReader(int64_t i) const;
//     int64_t LastReader(int64_t i) const;
//     // A functor: the weight of input i for output o, of type A.
//     template <typename A> auto Weights(int64_t o) const;
//   };
#include <cstdint>

#include "mxtrain/base/math.h"

namespace mxtrain {

// Every element is repeated `factor` times.
struct NearestTaps {
  int64_t in, out, factor;

  NearestTaps(int64_t length, int64_t times) : in(length), out(length * times), factor(times) {}

  MXTRAIN_HD int64_t First(int64_t o) const { return o / factor; }
  MXTRAIN_HD int64_t Last(int64_t o) const { return o / factor + 1; }
  MXTRAIN_HD int64_t FirstReader(int64_t i) const { return i * factor; }
  MXTRAIN_HD int64_t LastReader(int64_t i) const { return (i + 1) * factor; }

  template <typename A>
  struct WeightsOf {
    MXTRAIN_HD A operator()(int64_t) const { return A(1); }
  };
  template <typename A>
  MXTRAIN_HD WeightsOf<A> Weights(int64_t) const {
    return {};
  }
};

// Linear interpolation between the two nearest elements. Output o lies at the position
//   o (in - 1) / (out - 1)         with aligned corners (0 if out = 1)
//   (o + 1/2) in / out - 1/2       else, at least 0
// of the input; beyond the last element its value continues. Both lengths are at least 1.
struct LinearTaps {
  int64_t in, out;
  // The position is (slope o + shift) / unit.
  int64_t slope, shift, unit;

  LinearTaps(int64_t length, int64_t target, bool align_corners)
      : in(length), out(target), slope(2 * length), shift(length - target), unit(2 * target) {
    if (!align_corners) return;
    slope = target > 1 ? length - 1 : 0;
    shift = 0;
    unit = target > 1 ? target - 1 : 1;
  }

  // In units.
  MXTRAIN_HD int64_t Position(int64_t o) const {
    const int64_t position = slope * o + shift;
    return position > 0 ? position : 0;
  }
  MXTRAIN_HD int64_t First(int64_t o) const { return Position(o) / unit; }
  MXTRAIN_HD int64_t Last(int64_t o) const {
    const int64_t next = CeilDivide(Position(o), unit);
    return next < in ? next + 1 : in;
  }
  // The first output whose position exceeds i - 1.
  MXTRAIN_HD int64_t FirstReader(int64_t i) const {
    if (i == 0) return 0;
    const int64_t distance = (i - 1) * unit - shift;
    return slope == 0 ? out : distance < 0 ? 0 : AtMostOut(distance / slope + 1);
  }
  // The first output whose position is at least i + 1.
  MXTRAIN_HD int64_t LastReader(int64_t i) const {
    const int64_t distance = (i + 1) * unit - shift;
    return slope == 0 ? out : distance < 0 ? 0 : AtMostOut(CeilDivide(distance, slope));
  }

  template <typename A>
  struct WeightsOf {
    int64_t position, unit, end;  // end: position of the last element
    MXTRAIN_HD A operator()(int64_t i) const {
      if (position >= end) return A(1);
      const int64_t distance = position - i * unit;
      return A(unit - (distance < 0 ? -distance : distance)) / A(unit);
    }
  };
  template <typename A>
  MXTRAIN_HD WeightsOf<A> Weights(int64_t o) const {
    return {Position(o), unit, (in - 1) * unit};
  }

 private:
  MXTRAIN_HD int64_t AtMostOut(int64_t o) const { return o < out ? o : out; }
};

// Means over `out` ranges that cover the axis: range o is [floor(o in / out), ceil((o + 1) in /
// out)). Both lengths are at least 1.
struct AverageTaps {
  int64_t in, out;

  MXTRAIN_HD int64_t First(int64_t o) const { return o * in / out; }
  MXTRAIN_HD int64_t Last(int64_t o) const { return CeilDivide((o + 1) * in, out); }
  MXTRAIN_HD int64_t FirstReader(int64_t i) const { return i * out / in; }
  MXTRAIN_HD int64_t LastReader(int64_t i) const { return CeilDivide((i + 1) * out, in); }

  template <typename A>
  struct WeightsOf {
    A weight;
    MXTRAIN_HD A operator()(int64_t) const { return weight; }
  };
  template <typename A>
  MXTRAIN_HD WeightsOf<A> Weights(int64_t o) const {
    return {A(1) / A(Last(o) - First(o))};
  }
};

// The taps of the gradient: each input of `taps` reads the outputs that read it. Without the
// functions for readers.
template <typename Taps>
struct Readers {
  Taps taps;
  int64_t in, out;

  explicit Readers(const Taps& of) : taps(of), in(of.out), out(of.in) {}

  MXTRAIN_HD int64_t First(int64_t i) const { return taps.FirstReader(i); }
  MXTRAIN_HD int64_t Last(int64_t i) const { return taps.LastReader(i); }

  template <typename A>
  struct WeightsOf {
    Taps taps;
    int64_t at;
    MXTRAIN_HD A operator()(int64_t o) const { return taps.template Weights<A>(o)(at); }
  };
  template <typename A>
  MXTRAIN_HD WeightsOf<A> Weights(int64_t i) const {
    return {taps, i};
  }
};

}  // namespace mxtrain
