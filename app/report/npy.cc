// SPDX-License-Identifier: Apache-2.0
#include "app/report/npy.h"

#include <limits>
#include <vector>

#include "mxtrain/base/format.h"

namespace mxtrain::report {
namespace {

// Magic, version, header length, a Python dictionary, and blanks up to a multiple of 64 bytes.
std::string Header(int64_t rows, const TShape& row_shape) {
  std::string shape = std::to_string(rows) + ",";
  for (int64_t d : row_shape) shape += format(" {},", d);
  std::string text = format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr size_t kBefore = 10, kAligned = 64;
  text.append(kAligned - (kBefore + text.size() + 1) % kAligned, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xff),
                         static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + text;
}

}  // namespace

NpyWriter::NpyWriter(std::string path, int64_t rows, const TShape& row_shape)
    : file_(std::move(path)), rows_(rows), row_size_(row_shape.Size()) {
  file_.Write(Header(rows, row_shape));
}

void NpyWriter::FillTo(int64_t row) {
  const std::vector<float> unknown(static_cast<size_t>(row_size_),
                                   std::numeric_limits<float>::quiet_NaN());
  for (; next_ < row; ++next_) WriteRow(unknown.data());
}

void NpyWriter::WriteRow(const float* values) {
  file_.Write(
      {reinterpret_cast<const char*>(values), static_cast<size_t>(row_size_) * sizeof(float)});
}

void NpyWriter::Write(int64_t row, const float* values) {
  FillTo(row);
  WriteRow(values);
  ++next_;
}

void NpyWriter::Finish() {
  FillTo(rows_);
  file_.Finish();
}

}  // namespace mxtrain::report
