// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/math.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr uint32_t kGgufVersion = 3;
constexpr int64_t kGgufAlignment = 32;

template <typename T>
void PutNumber(T number, std::string* to) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &number, sizeof(T));
  to->append(bytes, sizeof(T));
}
void PutText(const std::string& text, std::string* to) {
  PutNumber(static_cast<uint64_t>(text.size()), to);
  *to += text;
}

// The format's numbers of types of facts.
enum FactType : uint32_t {
  kUint32Fact = 4,
  kInt32Fact = 5,
  kFloatFact = 6,
  kBoolFact = 7,
  kTextFact = 8,
  kListFact = 9,
};

struct PutFact {
  std::string* to;
  void operator()(bool value) const {
    PutNumber<uint32_t>(kBoolFact, to);
    PutNumber<uint8_t>(value ? 1 : 0, to);
  }
  void operator()(uint32_t value) const {
    PutNumber<uint32_t>(kUint32Fact, to);
    PutNumber(value, to);
  }
  void operator()(float value) const {
    PutNumber<uint32_t>(kFloatFact, to);
    PutNumber(value, to);
  }
  void operator()(const std::string& value) const {
    PutNumber<uint32_t>(kTextFact, to);
    PutText(value, to);
  }
  void operator()(const std::vector<std::string>& values) const {
    PutList(kTextFact, values.size());
    for (const std::string& value : values) PutText(value, to);
  }
  void operator()(const std::vector<int32_t>& values) const {
    PutList(kInt32Fact, values.size());
    for (const int32_t value : values) PutNumber(value, to);
  }
  void PutList(FactType of, size_t size) const {
    PutNumber<uint32_t>(kListFact, to);
    PutNumber<uint32_t>(of, to);
    PutNumber<uint64_t>(size, to);
  }
};

uint32_t ArrayType(DType type) {
  switch (type) {
    case DType::kFloat32:
      return 0;
    case DType::kFloat16:
      return 1;
    default:
      return 30;  // bfloat16
  }
}

template <typename T>
std::string Stored(const std::vector<float>& values, const std::string& name) {
  std::string bytes;
  bytes.reserve(values.size() * sizeof(T));
  for (const float value : values) {
    const T stored(value);
    if (std::isfinite(value) && !std::isfinite(static_cast<float>(stored))) {
      Throw(ErrorKind::kData,
            "the array '{}' has {}, which {} does not hold; take bfloat16 or float32", name, value,
            sizeof(T) == 2 ? "float16" : "float32");
    }
    PutNumber(stored, &bytes);
  }
  return bytes;
}

}  // namespace

void GgufWriter::Set(std::string key, Fact value) {
  facts_.emplace_back(std::move(key), std::move(value));
}

void GgufWriter::Add(std::string name, NDArray array, DType type) {
  MXTRAIN_ASSERT(type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBfloat16);
  arrays_.push_back({std::move(name), std::move(array), type});
}

std::string GgufWriter::Beginning() const {
  std::string bytes = "GGUF";
  PutNumber(kGgufVersion, &bytes);
  PutNumber<uint64_t>(arrays_.size(), &bytes);
  PutNumber<uint64_t>(facts_.size(), &bytes);
  for (const auto& [key, value] : facts_) {
    PutText(key, &bytes);
    std::visit(PutFact{&bytes}, value);
  }
  int64_t offset = 0;
  for (const Array& array : arrays_) {
    const TShape& shape = array.data.shape();
    PutText(array.name, &bytes);
    PutNumber(static_cast<uint32_t>(shape.ndim()), &bytes);
    for (int i = shape.ndim() - 1; i >= 0; --i) PutNumber(static_cast<uint64_t>(shape[i]), &bytes);
    PutNumber(ArrayType(array.type), &bytes);
    PutNumber(static_cast<uint64_t>(offset), &bytes);
    offset += RoundUp(array.bytes(), kGgufAlignment);
  }
  return bytes;
}

void GgufWriter::Write(const std::string& path) const {
  FileWriter file(path);
  const auto put = [&file](std::string bytes) {
    bytes.resize(static_cast<size_t>(RoundUp(std::ssize(bytes), kGgufAlignment)), '\0');
    file.Write(bytes);
  };
  put(Beginning());
  for (const Array& array : arrays_) {
    const std::vector<float> values = array.data.ToVector();
    if (array.type == DType::kFloat16) {
      put(Stored<float16>(values, array.name));
    } else if (array.type == DType::kBfloat16) {
      put(Stored<bfloat16>(values, array.name));
    } else {
      put(Stored<float>(values, array.name));
    }
  }
  file.Commit();
}

}  // namespace mxtrain
