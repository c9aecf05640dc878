#pragma once
// What `normalize: auto` and `missing: mean` stand for in tables.
#include <string>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Of one field of numbers, by element.
struct ColumnStatistics {
  std::string field;
  std::vector<double> mean, std;  // std: of the whole set; 1 where all numbers are one
};

// Measures all examples, in double; NaN counts as not there. Throws kConfig for a field that the source does not have or that holds no numbers, kData
// where an element has no number at all.
MXTRAIN_API std::vector<ColumnStatistics> MeasureColumns(const Source& source, const std::vector<std::string>& fields);

}  // namespace mxtrain::io
