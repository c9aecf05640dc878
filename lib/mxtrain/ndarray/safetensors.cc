// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/internal/file_shape.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // limit of the format's own library
constexpr uint64_t kMostBytes = uint64_t{1} << 62;
constexpr const char* kMetadata = "__metadata__";
constexpr std::pair<const char*, DType> kTypes[] = {
    {"F32", DType::kFloat32}, {"F64", DType::kFloat64}, {"F16", DType::kFloat16},
    {"U8", DType::kUint8},    {"I32", DType::kInt32},   {"BF16", DType::kBfloat16},
    {"I64", DType::kInt64}};

// Elements of a type that arrays do not have, as one that holds all its values.
using Converter = std::string (*)(std::string_view bytes);

template <typename To, typename From, typename F>
std::string ConvertEach(std::string_view bytes, const F& convert) {
  std::string converted(bytes.size() / sizeof(From) * sizeof(To), '\0');
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, bytes.data() + i * sizeof(From), sizeof(From));
    const To to = convert(from);
    std::memcpy(converted.data() + i * sizeof(To), &to, sizeof(To));
  }
  return converted;
}

template <typename From, typename To>
std::string Widened(std::string_view bytes) {
  return ConvertEach<To, From>(bytes, [](From value) { return static_cast<To>(value); });
}

std::string FromU64(std::string_view bytes) {
  return ConvertEach<int64_t, uint64_t>(bytes, [](uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      Throw(ErrorKind::kData, "its element {} is too large for int64", value);
    return static_cast<int64_t>(value);
  });
}

struct FileType {
  int64_t bytes = 0;             // of an element in the file
  DType type = DType::kFloat32;  // of the array
  Converter convert = nullptr;
};
const std::pair<const char*, FileType> kForeignTypes[] = {
    {"BOOL", {1, DType::kUint8}},
    {"I8", {1, DType::kInt32, Widened<int8_t, int32_t>}},
    {"I16", {2, DType::kInt32, Widened<int16_t, int32_t>}},
    {"U16", {2, DType::kInt32, Widened<uint16_t, int32_t>}},
    {"U32", {4, DType::kInt64, Widened<uint32_t, int64_t>}},
    {"U64", {8, DType::kInt64, FromU64}},
};

struct Entry {
  std::string name;
  TShape shape;
  FileType type;
  std::string_view bytes;
  std::string why_not = {};  // the elements cannot be read; then there is no type
};

// Fractions and numbers beyond 64 bits would be silently truncated.
void RequireWhole(const FileJson& numbers) {
  const bool whole = std::all_of(numbers.begin(), numbers.end(),
                                 [](const FileJson& number) { return number.is_number_integer(); });
  if (numbers.is_array() && !whole)
    Throw(ErrorKind::kData, "{} should be a list of integers",
          numbers.dump(-1, ' ', false, FileJson::error_handler_t::replace));
}

TShape ShapeOf(const FileJson& dims) {
  RequireWhole(dims);
  return FileShape(dims.get<std::vector<int64_t>>());
}

// Nothing for types that no array can hold: complex numbers, floats of 8 bits and fewer.
std::optional<FileType> TypeOf(const std::string& word) {
  for (const auto& [known, type] : kTypes) {
    if (word == known) return FileType{SizeOf(type), type};
  }
  for (const auto& [known, type] : kForeignTypes) {
    if (word == known) return type;
  }
  return std::nullopt;
}

bool IsForeign(const std::string& word) {
  return std::any_of(std::begin(kForeignTypes), std::end(kForeignTypes),
                     [&](const auto& known) { return word == known.first; });
}

Entry EntryOf(const std::string& name, const FileJson& item, std::string_view data) {
  const std::string word = item.at("dtype").get<std::string>();
  const std::optional<FileType> type = TypeOf(word);
  Entry entry{name, ShapeOf(item.at("shape")), type.value_or(FileType{}), {}};
  RequireWhole(item.at("data_offsets"));
  const auto offsets = item.at("data_offsets").get<std::vector<uint64_t>>();
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    Throw(ErrorKind::kData, "its bytes {} are outside the file", item.at("data_offsets").dump());
  }
  if (!type) {
    entry.why_not = format("its elements are {}, which mxtrain does not support; save it as F32",
                           Shortened(word));
    entry.bytes = data.substr(offsets[0], offsets[1] - offsets[0]);
    return entry;
  }
  const auto wanted = static_cast<uint64_t>(entry.shape.Size() * entry.type.bytes);
  if (offsets[1] - offsets[0] != wanted) {
    Throw(ErrorKind::kData, "{} of type {} takes {} bytes, the file says {}",
          entry.shape.ToString(), IsForeign(word) ? word : NameOf(entry.type.type), wanted,
          offsets[1] - offsets[0]);
  }
  entry.bytes = data.substr(offsets[0], wanted);
  return entry;
}

// The header, an object without duplicate names.
FileJson ParseHeader(std::string_view text, const std::string& file) {
  const std::string what = file + " is not a safetensors file: its header";
  FileJson header = ReadJsonOf(what, text);
  if (!header.is_object()) Throw(ErrorKind::kData, "{} is not a JSON object", what);
  return header;
}

// Arrays must not overlap: otherwise a small file could expand to any size.
void RequireApart(const std::vector<Entry>& entries, const std::string& file) {
  std::vector<const Entry*> by_place;
  for (const Entry& entry : entries) {
    if (!entry.bytes.empty()) by_place.push_back(&entry);
  }
  std::sort(by_place.begin(), by_place.end(),
            [](const Entry* a, const Entry* b) { return a->bytes.data() < b->bytes.data(); });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const Entry &before = *by_place[i - 1], &after = *by_place[i];
    if (before.bytes.data() + before.bytes.size() <= after.bytes.data()) continue;
    Throw(ErrorKind::kData, "{}: the arrays '{}' and '{}' overlap; every array needs its own bytes",
          file, before.name, after.name);
  }
}

// A file that ends before its arrays do was cut off, as by a download that broke: `begin` is where
// they begin.
void RequireAll(const FileJson& header, uint64_t size, uint64_t begin, const std::string& file) {
  uint64_t end = 0;
  for (const auto& [name, item] : header.items()) {
    const auto offsets = item.is_object() ? item.find("data_offsets") : item.end();
    if (name == kMetadata || offsets == item.end() || !offsets->is_array() || offsets->size() != 2)
      continue;
    const FileJson& last = (*offsets)[1];
    if (last.is_number_unsigned()) end = std::max(end, last.get<uint64_t>());
  }
  if (end <= size - begin || end > kMostBytes) return;  // beyond that it is no place in a file
  Throw(ErrorKind::kData, "{} is truncated: it has {} bytes, its header describes {}", file, size,
        begin + end);
}

std::vector<Entry> ReadEntries(std::string_view bytes, const std::string& file) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes)
    Throw(ErrorKind::kData, "{} is not a safetensors file: it has {} bytes", file, bytes.size());
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > std::min<uint64_t>(kMostHeaderBytes, bytes.size() - kLengthBytes)) {
    Throw(ErrorKind::kData,
          "{} is not a safetensors file, or is truncated: its first number, {}, is not a header "
          "length",
          file, length);
  }
  const FileJson header = ParseHeader(bytes.substr(kLengthBytes, length), file);
  RequireAll(header, bytes.size(), kLengthBytes + length, file);
  std::vector<Entry> entries;
  for (const auto& [name, item] : header.items()) {
    if (name == kMetadata) continue;
    try {
      entries.push_back(EntryOf(name, item, bytes.substr(kLengthBytes + length)));
    } catch (const FileJson::exception&) {
      Throw(ErrorKind::kData,
            "{}: the header does not describe '{}' by dtype, shape and data_offsets", file, name);
    } catch (const Error& e) {
      Throw(ErrorKind::kData, "{}: array '{}': {}", file, name, e.what());
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  RequireApart(entries, file);
  return entries;
}

// Elements that the array of the file's type cannot hold are why it is not read.
void ConvertElements(Entry* entry, std::string* converted) {
  if (!entry->type.convert || !entry->why_not.empty()) return;
  try {
    *converted = entry->type.convert(entry->bytes);
    entry->bytes = *converted;
  } catch (const Error& e) {
    entry->why_not = e.what();
  }
}

void ThrowUnread(const Entry& entry, const std::string& file) {
  Throw(ErrorKind::kData, "{}: array '{}': {}", file, entry.name, entry.why_not);
}

// JSON text is UTF-8.
void RequireText(const std::string& name) {
  if (IsUtf8(name)) return;
  Throw(ErrorKind::kData,
        "array '{}' cannot be written to a safetensors file: its name is not UTF-8",
        EscapedBytes(name));
}

const char* WordOf(DType type) {
  for (const auto& [word, known] : kTypes) {
    if (known == type) return word;
  }
  Throw(ErrorKind::kBug, "no safetensors type for {}", NameOf(type));
}

}  // namespace

NamedArrays DeserializeSafetensors(Runtime& runtime, std::string_view bytes,
                                   const std::string& file_name, UnreadArrays* unread) {
  std::vector<Entry> entries = ReadEntries(bytes, file_name);
  for (const Entry& entry : entries) {
    if (!unread && !entry.why_not.empty()) ThrowUnread(entry, file_name);
  }
  NamedArrays result;
  for (Entry& entry : entries) {
    std::string converted;
    ConvertElements(&entry, &converted);
    if (!entry.why_not.empty()) {
      if (!unread) ThrowUnread(entry, file_name);
      unread->emplace(entry.name, entry.why_not);
      continue;
    }
    NDArray& array = result.arrays.emplace_back(runtime, entry.shape, entry.type.type,
                                                Context::cpu(), Layout(), entry.name);
    array.CopyFromHost(entry.bytes.data(), static_cast<int64_t>(entry.bytes.size()));
    result.names.push_back(entry.name);
  }
  return result;
}

std::string SerializeSafetensors(const std::map<std::string, NDArray>& arrays,
                                 const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  int64_t end = 0;
  for (const auto& [name, array] : arrays) {
    RequireText(name);
    const int64_t begin = std::exchange(end, end + array.shape().Size() * SizeOf(array.dtype()));
    header[name] = {{"dtype", WordOf(array.dtype())},
                    {"shape", std::vector<int64_t>(array.shape().begin(), array.shape().end())},
                    {"data_offsets", {begin, end}}};
  }
  // Metadata may quote a path that is not UTF-8.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(RoundUp(text.size(), kLengthBytes), ' ');  // arrays start at 8-byte boundaries
  const uint64_t length = text.size();
  std::string out(reinterpret_cast<const char*>(&length), kLengthBytes);
  out += text;
  for (const auto& [name, array] : arrays) {
    const auto size = static_cast<size_t>(array.shape().Size() * SizeOf(array.dtype()));
    out.resize(out.size() + size);
    array.CopyToHost(out.data() + out.size() - size, static_cast<int64_t>(size));
  }
  return out;
}

}  // namespace mxtrain
