// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {
namespace {

static_assert(std::endian::native == std::endian::little);

struct TypeInfo {
  ElementType type;
  const char* name;
  int64_t bytes;
};
constexpr TypeInfo kTypes[] = {
    {ElementType::kFloat, "float", 4},   {ElementType::kUint8, "uint8", 1},
    {ElementType::kInt8, "int8", 1},     {ElementType::kUint16, "uint16", 2},
    {ElementType::kInt16, "int16", 2},   {ElementType::kInt32, "int32", 4},
    {ElementType::kInt64, "int64", 8},   {ElementType::kString, "string", 0},
    {ElementType::kBool, "bool", 1},     {ElementType::kFloat16, "float16", 2},
    {ElementType::kDouble, "double", 8}, {ElementType::kUint32, "uint32", 4},
    {ElementType::kUint64, "uint64", 8}, {ElementType::kBfloat16, "bfloat16", 2},
};

template <typename Stored, typename To>
std::vector<To> Converted(const Tensor& tensor) {
  const auto size = static_cast<size_t>(tensor.Size());
  std::vector<To> values(size);
  for (size_t i = 0; i < size; ++i) {
    Stored value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(Stored), sizeof(Stored));
    if constexpr (std::is_floating_point_v<To> || std::is_integral_v<Stored>) {
      values[i] = static_cast<To>(value);
    } else {
      const auto number = static_cast<double>(value);
      if (!(number == std::floor(number) && std::abs(number) < 0x1p62))
        Throw(ErrorKind::kData, "expected whole numbers, got {}", number);
      values[i] = static_cast<To>(number);
    }
  }
  return values;
}

template <typename To>
std::vector<To> Numbers(const Tensor& tensor) {
  const int64_t wanted = tensor.Size() * SizeOf(tensor.type);
  if (static_cast<int64_t>(tensor.bytes.size()) != wanted)
    Throw(ErrorKind::kData, "an array has {} bytes instead of {}", tensor.bytes.size(), wanted);
  switch (tensor.type) {
    case ElementType::kFloat:
      return Converted<float, To>(tensor);
    case ElementType::kDouble:
      return Converted<double, To>(tensor);
    case ElementType::kFloat16:
      return Converted<float16, To>(tensor);
    case ElementType::kBfloat16:
      return Converted<bfloat16, To>(tensor);
    case ElementType::kBool:
    case ElementType::kUint8:
      return Converted<uint8_t, To>(tensor);
    case ElementType::kInt8:
      return Converted<int8_t, To>(tensor);
    case ElementType::kUint16:
      return Converted<uint16_t, To>(tensor);
    case ElementType::kInt16:
      return Converted<int16_t, To>(tensor);
    case ElementType::kInt32:
      return Converted<int32_t, To>(tensor);
    case ElementType::kUint32:
      return Converted<uint32_t, To>(tensor);
    case ElementType::kInt64:
      return Converted<int64_t, To>(tensor);
    case ElementType::kUint64:
      return Converted<uint64_t, To>(tensor);
    default:
      Throw(ErrorKind::kData, "expected numbers, got elements of type {}", NameOf(tensor.type));
  }
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

const char* NameOf(ElementType type) {
  for (const TypeInfo& row : kTypes) {
    if (row.type == type) return row.name;
  }
  return "unknown";
}

int64_t SizeOf(ElementType type) {
  for (const TypeInfo& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

Tensor Tensor::Floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return {ElementType::kFloat, std::move(dims), BytesOf(values)};
}

Tensor Tensor::Ints(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return {ElementType::kInt64, std::move(dims), BytesOf(values)};
}

int64_t Tensor::Size() const {
  int64_t size = 1;  // without lengths of 0, which do not excuse the others
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0 || dim > TShape::kMaxSize || (dim > 0 && size > TShape::kMaxSize / dim))
      Throw(ErrorKind::kData, "an array of {} elements along an axis is too large or negative",
            dim);
    if (dim > 0) size *= dim;
    empty = empty || dim == 0;
  }
  return empty ? 0 : size;
}

std::vector<float> Tensor::ToFloats() const {
  return Numbers<float>(*this);
}

std::vector<double> Tensor::Doubles() const {
  return Numbers<double>(*this);
}

std::vector<int64_t> Tensor::ToInts() const {
  return Numbers<int64_t>(*this);
}

}  // namespace mxtrain::onnx
