// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statistics behind `normalize` and `missing: mean` for tables.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/base/standardization.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Statistics of one numeric field, by element.
struct ColumnStatistics {
  std::string field;
  // Of the numbers after their transform; std: of the whole set, 1 if all numbers are equal.
  std::vector<double> mean, std;
  std::vector<ColumnTransform> transforms = {};  // empty: all none
};

// By field, what its elements are transformed by.
using TransformKinds = std::map<std::string, std::vector<ColumnTransform::Kind>>;

// Measures all examples, in double; NaN counts as missing. The knots of kQuantile give the numbers
// of the set a normal distribution, equal ones their middle rank: p = (those below + half of the
// equal ones) / all becomes the number that a normal variable stays below with probability p.
// Throws kConfig for an unknown or non-numeric field, kData, naming the example, if an element has
// no number in any example, and for a number of kLog that is not above 0.
MXTRAIN_API std::vector<ColumnStatistics> MeasureColumns(const Source& source,
                                                         const std::vector<std::string>& fields,
                                                         const TransformKinds& transforms = {});

// How a field is restored, whose columns were standardized with these numbers: one with a deviation
// of 0 was not.
MXTRAIN_API Standardization UnitsOfColumns(const std::vector<double>& means,
                                           const std::vector<double>& stds,
                                           std::vector<ColumnTransform> transforms);

}  // namespace mxtrain::io
