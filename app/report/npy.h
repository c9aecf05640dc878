// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy files (.npy): numbers of one array.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/result_file.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::report {

struct NpyArray {
  std::vector<int64_t> dims;  // none: a single number
  std::vector<float> values;  // in C order
};
// Format 1.0 to 3.0 with booleans, integers, float16, float32 or float64, in either order of bytes
// and of axes. Throws kData, with the name of the file, for other types, for a file that is damaged
// or cut off, and for integers beyond 2^24, of which float32 does not hold all.
NpyArray ParseNpy(std::string_view bytes, const std::string& name);
NpyArray ReadNpy(const std::string& path);  // also as ReadFile

// Writes format 1.0, float32, little-endian, C order.
//
// Rows are written in ascending order; skipped rows are NaN, so that row i is always example i. The
// file gets its name once complete.
class NpyWriter {
 public:
  NpyWriter(std::string path, int64_t rows, const TShape& row_shape);  // throws kFileSystem
  void Write(int64_t row, const float* values);
  void Finish();  // throws kFileSystem if not everything was written

 private:
  void FillTo(int64_t row);
  void WriteRow(const float* values);

  ResultFile file_;
  const int64_t rows_, row_size_;
  int64_t next_ = 0;
};

}  // namespace mxtrain::report
