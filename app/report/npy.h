#pragma once
// A file of numbers that NumPy loads: format 1.0 of .npy, float32, little-endian, in C order.
#include <cstdint>
#include <string>

#include "app/report/result_file.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::report {

// Rows come in ascending order; those that are left out hold NaN, so that row i always is example i. The file has its name once it is whole.
class NpyWriter {
 public:
  NpyWriter(std::string path, int64_t rows, const TShape& row_shape);  // throws kFileSystem
  void Write(int64_t row, const float* values);
  void Finish();  // throws kFileSystem where not everything arrived

 private:
  void FillTo(int64_t row);
  void WriteRow(const float* values);

  ResultFile file_;
  const int64_t rows_, row_size_;
  int64_t next_ = 0;
};

}  // namespace mxtrain::report
