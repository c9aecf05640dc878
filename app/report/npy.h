// SPDX-License-Identifier: Apache-2.0
#pragma once
// A NumPy file: .npy format 1.0, float32, little-endian, C order.
#include <cstdint>
#include <string>

#include "app/report/result_file.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::report {

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
