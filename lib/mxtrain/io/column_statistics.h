// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statistics behind `normalize: auto` and `missing: mean` for tables.
#include <string>
#include <vector>

#include "mxtrain/base/standardization.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Statistics of one numeric field, by element.
struct ColumnStatistics {
  std::string field;
  std::vector<double> mean, std;  // std: of the whole set; 1 if all numbers are equal
};

// Measures all examples, in double; NaN counts as missing. Throws kConfig for an unknown or
// non-numeric field, kData if an element has no number in any example.
MXTRAIN_API std::vector<ColumnStatistics> MeasureColumns(const Source& source,
                                                         const std::vector<std::string>& fields);

// How a field is restored, whose columns were standardized with these numbers: one with a deviation
// of 0 was not.
MXTRAIN_API Standardization UnitsOfColumns(const std::vector<double>& means,
                                           const std::vector<double>& stds);

}  // namespace mxtrain::io
