// SPDX-License-Identifier: Apache-2.0
// The byte format of ".params" files: little-endian, no alignment, no checksums. A file is read in
// two passes: the first checks that every record is within the file, the second creates the arrays.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/ndarray/array_stream.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8, kV2 = 0xF993FAC9, kV3 = 0xF993FACA;
constexpr uint32_t kMostDims = 32;  // MXNet's limit; a version 0 record that claims more is invalid
// The smallest record has 4 bytes, but an array takes hundreds.
constexpr uint64_t kMostArrays = 1 << 16;
constexpr int32_t kCpuDevice = 1;
constexpr int64_t kPieceBytes = int64_t{1} << 20;

int64_t ElementBytesOf(const NDArray& array) {
  return array.empty() ? 0 : array.shape().Size() * SizeOf(array.dtype());
}

// Calls work(part, bytes) for consecutive parts of a plain array, in order.
template <typename Work>
void ForPieces(const NDArray& plain, const Work& work) {
  const int64_t count = plain.shape().Size(), size = SizeOf(plain.dtype());
  if (count == 0) return;
  const NDArray flat = plain.Reshape(TShape{count});
  for (int64_t begin = 0; begin < count; begin += kPieceBytes / size) {
    const int64_t end = std::min(count, begin + kPieceBytes / size);
    work(flat.Slice(begin, end), (end - begin) * size);
  }
}

// ---- Writing

template <typename T>
void Put(const WritePiece& write, T value) {
  write({reinterpret_cast<const char*>(&value), sizeof value});
}

// Version 2 treats a shape without dimensions or with a 0 as unknown; version 3 can express both.
void PutArray(const WritePiece& write, const NDArray& array) {
  if (array.empty()) {
    Put(write, kV2);
    Put<int32_t>(write, 0);
    Put<int32_t>(write, 0);
    return;
  }
  const TShape& shape = array.shape();
  Put(write, shape.ndim() == 0 || shape.Size() == 0 ? kV3 : kV2);
  Put<int32_t>(write, 0);  // dense
  Put<int32_t>(write, shape.ndim());
  for (int64_t dim : shape) Put<int64_t>(write, dim);
  Put<int32_t>(write, kCpuDevice);
  Put<int32_t>(write, 0);
  Put(write, static_cast<int32_t>(array.dtype()));
  std::string piece;
  ForPieces(array.ToPlain(), [&](const NDArray& part, int64_t bytes) {
    piece.resize(static_cast<size_t>(bytes));
    part.CopyToHost(piece.data(), bytes);
    write(piece);
  });
}

uint64_t RecordBytes(const NDArray& array) {
  if (array.empty()) return 3 * sizeof(int32_t);
  return 6 * sizeof(int32_t) + static_cast<uint64_t>(array.shape().ndim()) * sizeof(int64_t) +
         static_cast<uint64_t>(ElementBytesOf(array));
}

// ---- Reading

class Reader {
 public:
  Reader(const ReadPiece& read, uint64_t bytes, const std::string& file)
      : read_(read), bytes_(bytes), file_(file) {}

  uint64_t left() const { return bytes_ - at_; }
  uint64_t at() const { return at_; }

  template <typename T>
  T Get(const char* what) {
    T value;
    Fill({reinterpret_cast<char*>(&value), sizeof value}, what);
    return value;
  }
  std::string GetText(uint64_t size, const char* what) {
    Need(size, what);
    std::string text(size, '\0');
    Fill(text, what);
    return text;
  }
  void Pass(uint64_t size, const char* what) {
    Need(size, what);
    std::string piece(static_cast<size_t>(std::min<uint64_t>(size, kPieceBytes)), '\0');
    for (uint64_t rest = size; rest > 0; rest -= piece.size()) {
      piece.resize(static_cast<size_t>(std::min<uint64_t>(rest, piece.size())));
      Fill(piece, what);
    }
  }
  void Fill(std::span<char> to, const char* what) {
    Need(to.size(), what);
    read_(to);
    at_ += to.size();
  }
  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> text, Args&&... args) const {
    Throw(ErrorKind::kData, "{} cannot be read at byte {}: {}", file_, at_,
          format(text, std::forward<Args>(args)...));
  }

 private:
  void Need(uint64_t size, const char* what) const {
    if (size > left()) Fail("the file ends inside {}", what);
  }

  const ReadPiece& read_;
  const uint64_t bytes_;
  const std::string& file_;
  uint64_t at_ = 0;
};

DType ReadType(Reader* in) {
  static constexpr const char* kForeign[] = {"int8", "bool", "int16", "uint16", "uint32", "uint64"};
  static constexpr int32_t kForeignFlags[] = {5, 7, 8, 9, 10, 11};
  const auto flag = in->Get<int32_t>("an element type");
  for (size_t i = 0; i < std::size(kForeignFlags); ++i) {
    if (flag == kForeignFlags[i])
      in->Fail("an array of type {}, which mxtrain does not support; save it as int32 or float32",
               kForeign[i]);
  }
  const auto type = static_cast<DType>(flag);
  if (flag < 0 || flag > static_cast<int32_t>(DType::kBfloat16) ||
      std::string_view(NameOf(type)) == "unknown") {
    in->Fail("{} is not an element type", flag);
  }
  return type;
}

// `Dim`: the integer type of a dimension in this version.
template <typename Dim>
TShape ReadDims(Reader* in, int64_t ndim) {
  if (ndim < 0 || ndim > TShape::kMaxDims)
    in->Fail("an array of {} dimensions; at most {} are supported", ndim, TShape::kMaxDims);
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

// Bytes of the elements, checked to be within the file without overflow.
uint64_t ElementBytes(const Reader& in, const TShape& shape, DType type) {
  const uint64_t size = static_cast<uint64_t>(SizeOf(type));
  const bool none = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const uint64_t most = none ? static_cast<uint64_t>(TShape::kMaxSize) : in.left() / size;
  uint64_t count = 1;
  for (int64_t dim : shape) {
    if (dim == 0) continue;
    if (count > most / static_cast<uint64_t>(dim)) {
      in.Fail("an array of {} {} is larger than the rest of the file ({} bytes)", NameOf(type),
              shape.ToString(), in.left());
    }
    count *= static_cast<uint64_t>(dim);
  }
  return none ? 0 : count * size;
}

void RequireDense(Reader* in) {
  const auto storage = in->Get<int32_t>("a storage type");
  if (storage == 1 || storage == 2) {
    in->Fail("a sparse array ({}); convert it with tostype('default') before saving",
             storage == 1 ? "row_sparse" : "csr");
  }
  if (storage != 0) in->Fail("{} is not a storage type", storage);
}

ArrayRecord ReadRecord(Reader* in) {
  ArrayRecord record;
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
    if (first > kMostDims)
      in->Fail(
          "0x{:08X} does not start an array of a known version (the file is damaged, or from a "
          "newer system)",
          first);
    record.shape = ReadDims<uint32_t>(in, first);
    if (record.shape.ndim() == 0) return record;
  }
  record.empty = false;
  in->Get<int32_t>("a device");  // where it was saved; irrelevant
  in->Get<int32_t>("a device");
  record.type = ReadType(in);
  record.at = in->at();
  in->Pass(ElementBytes(*in, record.shape, record.type), "the elements of an array");
  return record;
}

}  // namespace

ArrayIndex::ArrayIndex(const ReadPiece& read, uint64_t bytes, std::string file_name)
    : file_name_(std::move(file_name)) {
  Reader in(read, bytes, file_name_);
  if (in.Get<uint64_t>("the header") != kMagic) {
    Throw(ErrorKind::kData, "{} is not a parameter file: it does not begin with the number 0x112",
          file_name_);
  }
  in.Get<uint64_t>("the header");
  const auto count = in.Get<uint64_t>("the number of arrays");
  if (count > in.left() / sizeof(uint32_t))
    in.Fail("{} arrays are more than the file can hold", count);
  if (count > kMostArrays) in.Fail("{} arrays; at most {} are supported", count, kMostArrays);
  for (uint64_t i = 0; i < count; ++i) records_.push_back(ReadRecord(&in));
  const auto names = in.Get<uint64_t>("the number of names");
  if (names != 0 && names != count) in.Fail("{} names for {} arrays", names, count);
  for (uint64_t i = 0; i < names; ++i)
    names_.push_back(in.GetText(in.Get<uint64_t>("a name"), "a name"));
  if (in.left() > 0) in.Fail("{} bytes follow the last name", in.left());
}

NamedArrays ArrayIndex::Load(Runtime& runtime, const ReadPiece& read) const {
  NamedArrays result{names_, {}};
  Reader in(read, UINT64_MAX, file_name_);
  std::string piece;
  for (size_t i = 0; i < records_.size(); ++i) {
    const ArrayRecord& record = records_[i];
    NDArray& array = result.arrays.emplace_back();
    if (record.empty) continue;
    array = NDArray(runtime, record.shape, record.type, Context::cpu(), {},
                    names_.empty() ? file_name_ : names_[i]);
    in.Pass(record.at - in.at(), "a record");
    ForPieces(array, [&](NDArray part, int64_t bytes) {
      piece.resize(static_cast<size_t>(bytes));
      in.Fill(piece, "the elements of an array");
      part.CopyFromHost(piece.data(), bytes);
    });
  }
  return result;
}

void WriteArrays(const NamedArrays& arrays, const WritePiece& write) {
  if (!arrays.names.empty() && arrays.names.size() != arrays.arrays.size()) {
    Throw(ErrorKind::kBug, "{} names for {} arrays", arrays.names.size(), arrays.arrays.size());
  }
  if (arrays.arrays.size() > kMostArrays) {
    Throw(ErrorKind::kConfig, "{} arrays are too many for one file; at most {} are supported",
          arrays.arrays.size(), kMostArrays);
  }
  Put(write, kMagic);
  Put<uint64_t>(write, 0);
  Put<uint64_t>(write, arrays.arrays.size());
  for (const NDArray& array : arrays.arrays) PutArray(write, array);
  Put<uint64_t>(write, arrays.names.size());
  for (const std::string& name : arrays.names) {
    Put<uint64_t>(write, name.size());
    write(name);
  }
}

uint64_t BytesOf(const NamedArrays& arrays) {
  uint64_t bytes = 4 * sizeof(uint64_t);
  for (const NDArray& array : arrays.arrays) bytes += RecordBytes(array);
  for (const std::string& name : arrays.names) bytes += sizeof(uint64_t) + name.size();
  return bytes;
}

std::string SerializeArrays(const NamedArrays& arrays) {
  std::string out;
  out.reserve(BytesOf(arrays));
  WriteArrays(arrays, [&out](std::string_view bytes) { out += bytes; });
  return out;
}

NamedArrays DeserializeArrays(Runtime& runtime, std::string_view bytes,
                              const std::string& file_name) {
  const auto from_begin = [bytes] {
    return [rest = bytes](std::span<char> to) mutable {
      rest.copy(to.data(), to.size());
      rest.remove_prefix(to.size());
    };
  };
  return ArrayIndex(from_begin(), bytes.size(), file_name).Load(runtime, from_begin());
}

void SaveArrays(const std::string& path, const NamedArrays& arrays) {
  FileWriter file(path);
  WriteArrays(arrays, [&file](std::string_view bytes) { file.Write(bytes); });
  file.Commit();
}

NamedArrays LoadArrays(Runtime& runtime, const std::string& path) {
  FileReader file(path);
  const ReadPiece read = [&file](std::span<char> to) {
    if (file.Read(to) != to.size())
      Throw(ErrorKind::kData, "{} was truncated while it was read", file.path());
  };
  const ArrayIndex index(read, file.size(), path);
  file.Rewind();
  return index.Load(runtime, read);
}

}  // namespace mxtrain
