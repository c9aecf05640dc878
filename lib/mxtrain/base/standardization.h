// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standardization of data to mean 0 and standard deviation 1, and its inverse.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// A rising function of the numbers of a column, before they are standardized.
struct ColumnTransform {
  enum Kind {
    kNone,
    kLog,       // the natural logarithm, of numbers above 0
    kQuantile,  // piecewise linear through the knots, constant before the first and after the last
  };
  Kind kind = kNone;
  std::vector<double> from = {}, to = {};  // the knots, both rising, at least two

  MXTRAIN_API double Apply(double value) const;
  MXTRAIN_API double Invert(double value) const;  // of values that Apply gives
  // "", "log" or "quantile FROM TO FROM TO ..."; FromText throws kConfig for another text.
  MXTRAIN_API std::string ToText() const;
  MXTRAIN_API static ColumnTransform FromText(std::string_view text);
};

// Per element of an example: standardized = (transform(value) - mean) / std.
struct Standardization {
  std::vector<double> mean, std;
  std::vector<ColumnTransform> transforms = {};  // empty: all none

  // Transforms consecutive whole examples of standardized numbers in place.
  MXTRAIN_API void Restore(std::vector<float>* values) const;
};

}  // namespace mxtrain
