#include "app/report/npy.h"

#include <limits>
#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain::report {
namespace {

// Magic, version, length of what follows, a dictionary of Python, and blanks up to a multiple of 64 bytes.
std::string Header(int64_t rows, const TShape& row_shape) {
  std::string shape = std::to_string(rows) + ",";
  for (int64_t d : row_shape) shape += format(" {},", d);
  std::string text = format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr size_t kBefore = 10, kAligned = 64;
  text.append(kAligned - (kBefore + text.size() + 1) % kAligned, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + text;
}

}  // namespace

NpyWriter::NpyWriter(std::string path, int64_t rows, const TShape& row_shape)
    : path_(std::move(path)), file_(path_, std::ios::binary), rows_(rows), row_size_(row_shape.Size()) {
  const std::string header = Header(rows, row_shape);
  file_.write(header.data(), static_cast<std::streamsize>(header.size()));
  if (!file_.flush()) Throw(ErrorKind::kFileSystem, "cannot write {}", path_);
}

void NpyWriter::FillTo(int64_t row) {
  const std::vector<float> unknown(static_cast<size_t>(row_size_), std::numeric_limits<float>::quiet_NaN());
  for (; next_ < row; ++next_)
    file_.write(reinterpret_cast<const char*>(unknown.data()), static_cast<std::streamsize>(unknown.size() * sizeof(float)));
}

void NpyWriter::Write(int64_t row, const float* values) {
  FillTo(row);
  file_.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(static_cast<size_t>(row_size_) * sizeof(float)));
  ++next_;
}

void NpyWriter::Finish() {
  FillTo(rows_);
  if (!file_.flush()) Throw(ErrorKind::kFileSystem, "cannot write {}", path_);
}

}  // namespace mxtrain::report
