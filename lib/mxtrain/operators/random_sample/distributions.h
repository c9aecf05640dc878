// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of a distribution: each is a struct of its parameters with
//
//   double operator()(const RandomDraws& draws, uint64_t i) const;  // element i of an array
//
// Uniform and Normal use the draws of a node one by one. The others take as many numbers as they
// need, all from a sequence that belongs to the element alone, so no element depends on another.
// Parameters outside of a distribution's range give NaN.
#include <cmath>
#include <limits>

#include "mxtrain/ndarray/resource.h"

namespace mxtrain::random_sample {

// Uniform in (0, 1): the middle of one of 2^52 parts, a number that a double holds exactly.
MXTRAIN_HD inline double InsideUnit(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// Numbers of one element: blocks of the node's stream that no other element has.
class ElementStream {
 public:
  MXTRAIN_HD ElementStream(const RandomDraws& draws, uint64_t element)
      : draws_(draws), element_(element) {}

  MXTRAIN_HD double Uniform() { return InsideUnit(Bits()); }
  MXTRAIN_HD double Normal() {  // Box and Muller
    const double radius = sqrt(-2 * log(Uniform()));
    return radius * cos(6.283185307179586 * Uniform());
  }
  MXTRAIN_HD uint64_t Bits() {
    if (left_ == 0) {
      constexpr int kElementBits = 40;
      const PhiloxBits block = Philox(draws_.state->seed, draws_.stream, draws_.state->step,
                                      (blocks_++ << kElementBits) | element_);
      numbers_[0] = (uint64_t{block.v[0]} << 32) | block.v[1];
      numbers_[1] = (uint64_t{block.v[2]} << 32) | block.v[3];
      left_ = 2;
    }
    return numbers_[--left_];
  }

 private:
  RandomDraws draws_;
  uint64_t element_, blocks_ = 0;
  uint64_t numbers_[2] = {0, 0};
  int left_ = 0;
};

inline constexpr int kMostAttempts =
    1000;  // of a rejection method; each succeeds nine times in ten

MXTRAIN_HD inline double NotANumber() {
  return std::numeric_limits<double>::quiet_NaN();
}

// ln k!
MXTRAIN_HD inline double LogFactorial(double k) {
  double x = k + 1, shift = 0;
  while (x < 10) shift += log(x++);
  // Stirling's series: from 10 on the next term is below 1e-10.
  const double y = 1 / (x * x);
  return (x - 0.5) * log(x) - x + 0.9189385332046727 +
         (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260))) / x - shift;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
MXTRAIN_HD inline double DrawGamma(ElementStream& stream, double shape) {
  if (!(shape > 0)) return NotANumber();
  double factor = 1;
  if (shape < 1) {
    factor = pow(stream.Uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (int i = 0; i < kMostAttempts; ++i) {
    const double x = stream.Normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (log(stream.Uniform()) < x * x / 2 + d * (1 - v + log(v))) return factor * d * v;
  }
  return NotANumber();
}

// The smallest k whose distribution function reaches u. The terms are added up, which is short for
// a small mean; what rounding leaves above their sum belongs to the last term that changes it.
MXTRAIN_HD inline double SmallPoissonAt(double u, double mean) {
  double term = exp(-mean), sum = term, k = 0;
  while (u > sum) {
    term *= mean / (k + 1);
    if (sum + term == sum) break;
    sum += term;
    ++k;
  }
  return k;
}
// Hoermann, "The transformed rejection method for generating Poisson random variables", 1993, PTRS.
MXTRAIN_HD inline double DrawLargePoisson(ElementStream& stream, double mean) {
  const double log_mean = log(mean), b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (int i = 0; i < kMostAttempts; ++i) {
    const double u = stream.Uniform() - 0.5, v = stream.Uniform(), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log_mean - mean - LogFactorial(k))
      return k;
  }
  return NotANumber();
}
MXTRAIN_HD inline double DrawPoisson(ElementStream& stream, double mean) {
  if (!(mean >= 0)) return NotANumber();
  constexpr double kLarge = 10;  // where PTRS begins
  return mean < kLarge ? SmallPoissonAt(stream.Uniform(), mean) : DrawLargePoisson(stream, mean);
}

struct Uniform {
  double low, high;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    return low + (high - low) * static_cast<double>(draws.Uniform(i));
  }
};
struct Normal {
  double mean, deviation;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    return deviation >= 0 ? mean + deviation * static_cast<double>(draws.Normal(i)) : NotANumber();
  }
};
struct Exponential {
  double rate;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    return rate > 0 ? -log(ElementStream(draws, i).Uniform()) / rate : NotANumber();
  }
};
struct Gamma {
  double shape, scale;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    if (!(scale > 0)) return NotANumber();
    ElementStream stream(draws, i);
    return scale * DrawGamma(stream, shape);
  }
};
struct Poisson {
  double mean;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    ElementStream stream(draws, i);
    return DrawPoisson(stream, mean);
  }
};
// Failures before the k-th success of probability p: a Poisson number whose mean is a gamma number.
struct NegativeBinomial {
  double successes, probability;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    if (!(probability > 0 && probability <= 1)) return NotANumber();
    ElementStream stream(draws, i);
    return DrawPoisson(stream, DrawGamma(stream, successes) * (1 - probability) / probability);
  }
};
// The same by its mean and dispersion: the variance is mean + alpha mean^2.
struct GeneralizedNegativeBinomial {
  double mean, alpha;
  MXTRAIN_HD double operator()(const RandomDraws& draws, uint64_t i) const {
    if (!(mean >= 0 && alpha >= 0)) return NotANumber();
    ElementStream stream(draws, i);
    if (alpha == 0) return DrawPoisson(stream, mean);
    return DrawPoisson(stream, DrawGamma(stream, 1 / alpha) * alpha * mean);
  }
};
// Integers from low to high - 1. The 64 random bits prefer some of them by at most 2^-64 of the
// range.
struct Integers {
  int64_t low, high;
  MXTRAIN_HD int64_t operator()(const RandomDraws& draws, uint64_t i) const {
    const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    return static_cast<int64_t>(static_cast<uint64_t>(low) +
                                ElementStream(draws, i).Bits() % count);
  }
};

}  // namespace mxtrain::random_sample
