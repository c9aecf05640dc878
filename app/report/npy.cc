// SPDX-License-Identifier: Apache-2.0
#include "app/report/npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

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

// ---- Reading

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostAxes = 64;  // as in NumPy; more would cost time for every element
constexpr int64_t kMostExact = int64_t{1} << 24;  // in float32

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> text, Args&&... args) {
  Throw(ErrorKind::kData, text, std::forward<Args>(args)...);
}

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> dims;
  size_t end = 0;  // where the elements begin
};

// What follows 'KEY': in the dictionary.
std::string_view ValueOf(std::string_view dictionary, const std::string& key) {
  const size_t at = dictionary.find("'" + key + "':");
  if (at == std::string_view::npos) Fail("its header has no '{}'", key);
  return Trim(dictionary.substr(at + key.size() + 3));
}

std::vector<int64_t> DimsOf(std::string_view value) {
  const size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos) Fail("its shape is damaged");
  std::vector<int64_t> dims;
  std::string_view rest = Trim(value.substr(1, end - 1));
  while (!rest.empty()) {
    int64_t dim = 0;
    const auto [stop, status] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (status != std::errc() || dim < 0) Fail("its shape is damaged");
    dims.push_back(dim);
    if (dims.size() > kMostAxes) Fail("its shape has more than {} axes", kMostAxes);
    rest = Trim(rest.substr(static_cast<size_t>(stop - rest.data())));
    if (rest.empty()) break;
    if (rest[0] != ',') Fail("its shape is damaged");
    rest = Trim(rest.substr(1));
  }
  return dims;
}

NpyHeader HeaderOf(std::string_view bytes) {
  constexpr size_t kVersionEnd = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < kVersionEnd) Fail("not a .npy file");
  const int version = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (version < 1 || version > 3) Fail("version {} of .npy is not supported", version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t length = 0;
  if (bytes.size() < kVersionEnd + length_bytes) Fail("the file ends in its header");
  for (size_t i = length_bytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[kVersionEnd + i]);
  NpyHeader header;
  header.end = kVersionEnd + length_bytes + length;
  if (header.end > bytes.size()) Fail("the file ends in its header");
  const std::string_view dictionary = bytes.substr(kVersionEnd + length_bytes, length);
  const std::string_view descr = ValueOf(dictionary, "descr");
  const size_t quote = descr.find('\'', 1);
  if (!descr.starts_with('\'') || quote == std::string_view::npos)
    Fail("its elements are records, not numbers");
  header.descr = std::string(descr.substr(1, quote - 1));
  header.fortran_order = ValueOf(dictionary, "fortran_order").starts_with("True");
  header.dims = DimsOf(ValueOf(dictionary, "shape"));
  return header;
}

// Of an element of type T; in the other order of bytes if `swap`.
template <typename T>
float NumberAt(const char* at, bool swap) {
  char raw[sizeof(T)];
  std::memcpy(raw, at, sizeof raw);
  if (swap) std::reverse(std::begin(raw), std::end(raw));
  T value;
  std::memcpy(&value, raw, sizeof value);
  if constexpr (std::integral<T>) {
    if (std::cmp_greater(value, kMostExact) || std::cmp_less(value, -kMostExact))
      Fail("it holds {}; whole numbers beyond {} are not all exact in float32", value, kMostExact);
  }
  return static_cast<float>(value);
}

float HalfAt(const char* at, bool swap) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return HalfBitsToFloat(swap ? static_cast<uint16_t>(bits << 8 | bits >> 8) : bits);
}
float BoolAt(const char* at, bool) {
  return *at == 0 ? 0.0f : 1.0f;
}

using NumberReader = float (*)(const char* at, bool swap);
struct NpyType {
  std::string_view name;  // without the order of bytes
  size_t size;
  NumberReader read;
};
constexpr NpyType kTypes[] = {{"f4", 4, NumberAt<float>},
                              {"f8", 8, NumberAt<double>},
                              {"f2", 2, HalfAt},
                              {"b1", 1, BoolAt},
                              {"i1", 1, NumberAt<int8_t>},
                              {"i2", 2, NumberAt<int16_t>},
                              {"i4", 4, NumberAt<int32_t>},
                              {"i8", 8, NumberAt<int64_t>},
                              {"u1", 1, NumberAt<uint8_t>},
                              {"u2", 2, NumberAt<uint16_t>},
                              {"u4", 4, NumberAt<uint32_t>},
                              {"u8", 8, NumberAt<uint64_t>}};

// From the order in which the first axis runs fastest.
std::vector<float> InCOrder(const std::vector<float>& values, const std::vector<int64_t>& dims) {
  std::vector<float> result(values.size());
  std::vector<int64_t> at(dims.size());
  for (const float value : values) {
    int64_t place = 0;
    for (size_t i = 0; i < dims.size(); ++i) place = place * dims[i] + at[i];
    result[static_cast<size_t>(place)] = value;
    for (size_t i = 0; i < dims.size() && ++at[i] == dims[i]; ++i) at[i] = 0;
  }
  return result;
}

// Whether so many elements have these dimensions; by division, so that no product is beyond 64
// bits.
bool Holds(const std::vector<int64_t>& dims, uint64_t count) {
  if (std::ranges::count(dims, 0) > 0) return count == 0;
  for (const int64_t dim : dims) {
    if (count % static_cast<uint64_t>(dim) != 0) return false;
    count /= static_cast<uint64_t>(dim);
  }
  return count == 1;
}

NpyArray Parse(std::string_view bytes) {
  const NpyHeader header = HeaderOf(bytes);
  const std::string_view descr = header.descr;
  const auto type = std::ranges::find_if(kTypes, [&descr](const NpyType& one) {
    return descr.size() == 3 && descr.substr(1) == one.name;
  });
  if (type == std::end(kTypes) || std::string_view("<>|=").find(descr[0]) == descr.npos) {
    Fail("elements of type '{}' are not supported; save it as float32 (array.astype('float32'))",
         EscapedBytes(Shortened(descr)));
  }
  const std::string_view elements = bytes.substr(header.end);
  const size_t count = elements.size() / type->size;
  if (elements.size() % type->size != 0 || !Holds(header.dims, count)) {
    Fail("its header describes the shape ({}) of '{}', which are not the {} bytes that follow",
         join(header.dims, ", "), descr, elements.size());
  }
  NpyArray array{header.dims, {}};
  array.values.reserve(count);
  for (size_t at = 0; at < elements.size(); at += type->size)
    array.values.push_back(type->read(elements.data() + at, descr[0] == '>'));
  if (header.fortran_order) array.values = InCOrder(array.values, array.dims);
  return array;
}

}  // namespace

NpyArray ParseNpy(std::string_view bytes, const std::string& name) {
  try {
    return Parse(bytes);
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}", name, error.what());
  }
}

NpyArray ReadNpy(const std::string& path) {
  return ParseNpy(ReadFile(path, std::numeric_limits<size_t>::max(), Readable::kFileOrPipe), path);
}

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
