// The byte format of ".params" files: little-endian, no alignment, no check sums. A file is read in two passes: the first walks over every
// record and proves that it lies in the file, the second makes the arrays.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8, kV2 = 0xF993FAC9, kV3 = 0xF993FACA;
constexpr uint32_t kMostDims = 32;  // of the reference system; a version 0 record that claims more is no record
constexpr int32_t kCpuDevice = 1;

// ---- Writing

template <typename T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Version 2 takes a shape without dimensions or with a 0 for an unknown one; version 3 can say both.
void PutArray(std::string* out, const NDArray& array) {
  if (array.empty()) {
    Put(out, kV2);
    Put<int32_t>(out, 0);
    Put<int32_t>(out, 0);
    return;
  }
  const TShape& shape = array.shape();
  Put(out, shape.ndim() == 0 || shape.Size() == 0 ? kV3 : kV2);
  Put<int32_t>(out, 0);  // dense
  Put<int32_t>(out, shape.ndim());
  for (int64_t dim : shape) Put<int64_t>(out, dim);
  Put<int32_t>(out, kCpuDevice);
  Put<int32_t>(out, 0);
  Put(out, static_cast<int32_t>(array.dtype()));
  const int64_t bytes = shape.Size() * SizeOf(array.dtype());
  const size_t at = out->size();
  out->resize(at + static_cast<size_t>(bytes));
  array.CopyToHost(out->data() + at, bytes);
}

// ---- Reading

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }

  template <typename T>
  T Get(const char* what) {
    T value;
    std::memcpy(&value, Take(sizeof value, what), sizeof value);
    return value;
  }
  const char* Take(uint64_t size, const char* what) {
    if (size > left()) Fail("the file ends inside {}", what);
    const char* data = bytes_.data() + at_;
    at_ += size;
    return data;
  }
  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> text, Args&&... args) const {
    Throw(ErrorKind::kData, "{} cannot be read at byte {}: {}", file_, at_, format(text, std::forward<Args>(args)...));
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
};

struct Record {
  bool empty = true;
  TShape shape;
  DType type = DType::kUnknown;
  const char* data = nullptr;  // into the file's bytes
};

DType ReadType(Reader* in) {
  static constexpr const char* kForeign[] = {"int8", "bool", "int16", "uint16", "uint32", "uint64"};
  static constexpr int32_t kForeignFlags[] = {5, 7, 8, 9, 10, 11};
  const auto flag = in->Get<int32_t>("an element type");
  for (size_t i = 0; i < std::size(kForeignFlags); ++i) {
    if (flag == kForeignFlags[i]) in->Fail("an array of type {}, which mxtrain does not have; save it as int32 or float32", kForeign[i]);
  }
  const auto type = static_cast<DType>(flag);
  if (flag < 0 || flag > static_cast<int32_t>(DType::kBfloat16) || std::string_view(NameOf(type)) == "unknown") {
    in->Fail("{} is no element type", flag);
  }
  return type;
}

// `Dim`: the integer type of a dimension in this version.
template <typename Dim>
TShape ReadDims(Reader* in, int64_t ndim) {
  if (ndim < 0 || ndim > TShape::kMaxDims) in->Fail("an array of {} dimensions; at most {} are supported", ndim, TShape::kMaxDims);
  TShape shape = TShape::OfRank(static_cast<int>(ndim));
  for (int i = 0; i < shape.ndim(); ++i) {
    const auto dim = in->Get<Dim>("a shape");
    if constexpr (std::is_signed_v<Dim>) {
      if (dim < 0) in->Fail("a dimension of {}", dim);
    }
    shape[i] = static_cast<int64_t>(dim);
  }
  return shape;
}

// Bytes of the elements, proved to be in the file without forming a product that overflows.
uint64_t ElementBytes(const Reader& in, const TShape& shape, DType type) {
  const uint64_t size = static_cast<uint64_t>(SizeOf(type));
  const bool none = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const uint64_t most = none ? static_cast<uint64_t>(TShape::kMaxSize) : in.left() / size;
  uint64_t count = 1;
  for (int64_t dim : shape) {
    if (dim == 0) continue;
    if (count > most / static_cast<uint64_t>(dim)) {
      in.Fail("an array of {} {} is larger than the rest of the file ({} bytes)", NameOf(type), shape.ToString(), in.left());
    }
    count *= static_cast<uint64_t>(dim);
  }
  return none ? 0 : count * size;
}

void RequireDense(Reader* in) {
  const auto storage = in->Get<int32_t>("a storage type");
  if (storage == 1 || storage == 2) {
    in->Fail("a sparse array ({}); convert it with tostype('default') before saving", storage == 1 ? "row_sparse" : "csr");
  }
  if (storage != 0) in->Fail("{} is no storage type", storage);
}

Record ReadRecord(Reader* in) {
  Record record;
  const auto first = in->Get<uint32_t>("an array");
  if (first == kV2 || first == kV3) {
    RequireDense(in);
    const auto ndim = in->Get<int32_t>("a shape");
    if (ndim == (first == kV3 ? -1 : 0)) return record;
    record.shape = ReadDims<int64_t>(in, ndim);
  } else if (first == kV1) {
    record.shape = ReadDims<int64_t>(in, in->Get<uint32_t>("a shape"));
    if (record.shape.ndim() == 0) return record;
  } else {
    if (first > kMostDims) in->Fail("0x{:08X} begins no array of a known version (the file is damaged, or from a newer system)", first);
    record.shape = ReadDims<uint32_t>(in, first);
    if (record.shape.ndim() == 0) return record;
  }
  record.empty = false;
  in->Get<int32_t>("a device");  // where it was saved; the data are the same
  in->Get<int32_t>("a device");
  record.type = ReadType(in);
  record.data = in->Take(ElementBytes(*in, record.shape, record.type), "the elements of an array");
  return record;
}

}  // namespace

std::string SerializeArrays(const NamedArrays& arrays) {
  if (!arrays.names.empty() && arrays.names.size() != arrays.arrays.size()) {
    Throw(ErrorKind::kBug, "{} names for {} arrays", arrays.names.size(), arrays.arrays.size());
  }
  std::string out;
  Put(&out, kMagic);
  Put<uint64_t>(&out, 0);
  Put<uint64_t>(&out, arrays.arrays.size());
  for (const NDArray& array : arrays.arrays) PutArray(&out, array);
  Put<uint64_t>(&out, arrays.names.size());
  for (const std::string& name : arrays.names) {
    Put<uint64_t>(&out, name.size());
    out += name;
  }
  return out;
}

NamedArrays DeserializeArrays(Runtime& runtime, std::string_view bytes, const std::string& file_name) {
  Reader in(bytes, file_name);
  if (in.Get<uint64_t>("the header") != kMagic) {
    Throw(ErrorKind::kData, "{} is no parameter file: it does not begin with the number 0x112", file_name);
  }
  in.Get<uint64_t>("the header");
  const auto count = in.Get<uint64_t>("the number of arrays");
  if (count > in.left() / sizeof(uint32_t)) in.Fail("{} arrays are more than the file can hold", count);
  std::vector<Record> records;
  for (uint64_t i = 0; i < count; ++i) records.push_back(ReadRecord(&in));

  NamedArrays result;
  const auto names = in.Get<uint64_t>("the number of names");
  if (names != 0 && names != count) in.Fail("{} names for {} arrays", names, count);
  for (uint64_t i = 0; i < names; ++i) {
    const auto size = in.Get<uint64_t>("a name");
    result.names.emplace_back(in.Take(size, "a name"), size);
  }
  if (in.left() > 0) in.Fail("{} bytes follow the last name", in.left());

  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    NDArray& array = result.arrays.emplace_back();
    if (record.empty) continue;
    array = NDArray(runtime, record.shape, record.type, Context::cpu(), {}, names ? result.names[i] : file_name);
    array.CopyFromHost(record.data, record.shape.Size() * SizeOf(record.type));
  }
  return result;
}

void SaveArrays(const std::string& path, const NamedArrays& arrays) {
  WriteFileAtomically(path, SerializeArrays(arrays));
}

NamedArrays LoadArrays(Runtime& runtime, const std::string& path) {
  return DeserializeArrays(runtime, ReadFile(path), path);
}

}  // namespace mxtrain
