// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of PyTorch, put together byte by byte as pickletools and the zip format describe them, and
// what reading them gives.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/torch_file.h"

namespace mxtrain::test {

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

// ---- Pickles

inline const std::string kNone = "N", kFalse = "\x89", kEmptyDict = "}";

inline std::string Text(const std::string& text) {
  return "X" + Bytes<uint32_t>({static_cast<uint32_t>(text.size())}) + text;
}
inline std::string ShortText(const std::string& text) {  // by Python 2
  return "U" + Bytes<uint8_t>({static_cast<uint8_t>(text.size())}) + text;
}
inline std::string Int(int64_t number) {
  if (number >= 0 && number < 256) return "K" + Bytes({static_cast<uint8_t>(number)});
  return "\x8a\x08" + Bytes({number});
}
inline std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string Tuple(const std::vector<std::string>& items) {
  std::string pickle = "(";
  for (const std::string& item : items) pickle += item;
  return pickle + "t";
}
inline std::string Ints(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  for (int64_t number : numbers) items.push_back(Int(number));
  return Tuple(items);
}
inline std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string pickle = "}(";
  for (const auto& [key, value] : items) pickle.append(Text(key)).append(value);
  return pickle + "u";
}
inline std::string Storage(const std::string& type, const std::string& key, int64_t count,
                           const std::string& part = "") {
  return Tuple({Text("storage"), Global("torch", type), Text(key), Text("cpu"), Int(count), part}) +
         "Q";
}
inline std::string Rebuild(const std::string& storage, int64_t offset,
                           const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  return Global("torch._utils", "_rebuild_tensor_v2") +
         Tuple({storage, Int(offset), Ints(shape), Ints(strides), kFalse,
                Global("collections", "OrderedDict") + ")R"}) +
         "R";
}
inline std::string PickleOf(const std::string& value) {
  return "\x80\x02" + value + ".";
}

// ---- The two forms

struct ZipEntry {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
};

inline uint32_t CrcOf(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

inline std::string ZipOf(const std::vector<ZipEntry>& entries, bool wide = false) {
  std::string zip, directory;
  for (const ZipEntry& entry : entries) {
    const auto name_bytes = static_cast<uint16_t>(entry.name.size());
    const auto size = static_cast<uint32_t>(entry.bytes.size());
    const auto begin = static_cast<uint32_t>(zip.size());
    const std::string what =
        Bytes<uint16_t>({entry.flags, entry.method, 0, 0}) + Bytes<uint32_t>({CrcOf(entry.bytes)});
    const std::string padding = "FB" + Bytes<uint16_t>({3}) + "ZZZ";
    for (const std::string& part :
         {std::string("PK\x03\x04"), Bytes<uint16_t>({20}), what, Bytes<uint32_t>({size, size}),
          Bytes<uint16_t>({name_bytes, 7}), entry.name, padding, entry.bytes})
      zip += part;
    const std::string extra =
        wide ? Bytes<uint16_t>({9, 2, 0, 1, 24}) + Bytes<uint64_t>({size, size, begin}) : "";
    for (const std::string& part :
         {std::string("PK\x01\x02"), Bytes<uint16_t>({20, 20}), what,
          wide ? Bytes<uint32_t>({~0u, ~0u}) : Bytes<uint32_t>({size, size}),
          Bytes<uint16_t>({name_bytes, static_cast<uint16_t>(extra.size()), 0, 0, 0}),
          Bytes<uint32_t>({0, wide ? ~0u : begin}), entry.name, extra})
      directory += part;
  }
  const uint64_t begin = zip.size(), bytes = directory.size(), count = entries.size();
  zip += directory;
  if (wide) {
    zip += "PK\x06\x06" + Bytes<uint64_t>({44}) + Bytes<uint16_t>({45, 45}) +
           Bytes<uint32_t>({0, 0}) + Bytes<uint64_t>({count, count, bytes, begin});
    zip += "PK\x06\x07" + Bytes<uint32_t>({0}) + Bytes<uint64_t>({begin + bytes}) +
           Bytes<uint32_t>({1});
    return zip + "PK\x05\x06" + Bytes<uint16_t>({0, 0, 0xffff, 0xffff}) +
           Bytes<uint32_t>({~0u, ~0u}) + Bytes<uint16_t>({0});
  }
  return zip + "PK\x05\x06" +
         Bytes<uint16_t>({0, 0, static_cast<uint16_t>(count), static_cast<uint16_t>(count)}) +
         Bytes<uint32_t>({static_cast<uint32_t>(bytes), static_cast<uint32_t>(begin)}) +
         Bytes<uint16_t>({0});
}

using Storages = std::vector<std::pair<std::string, std::string>>;  // key, bytes

inline std::string ZipFile(const std::string& object, const Storages& storages) {
  std::vector<ZipEntry> entries = {{"net/data.pkl", PickleOf(object)}, {"net/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) entries.push_back({"net/data/" + key, bytes});
  entries.push_back({"net/version", "3\n"});
  return ZipOf(entries);
}

inline const std::string kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

// `sizes`: bytes of an element of each storage.
inline std::string StreamFile(const std::string& object, const Storages& storages,
                              const std::vector<int64_t>& sizes) {
  std::string keys = "](", data;
  for (size_t i = 0; i < storages.size(); ++i) {
    keys += Text(storages[i].first);
    data += Bytes({static_cast<int64_t>(storages[i].second.size()) / sizes[i]});
    data += storages[i].second;
  }
  return kMagic + PickleOf("M" + Bytes<uint16_t>({1001})) +
         PickleOf(Dict({{"protocol_version", Int(1001)}, {"little_endian", "\x88"}})) +
         PickleOf(object) + PickleOf(keys + "e") + data;
}

// ---- Reading

struct TorchFixture {
  Runtime runtime{[] {
                    RuntimeOptions options;
                    options.engine = "naive";
                    options.threads = 1;
                    return options;
                  }(),
                  nullptr};

  std::map<std::string, NDArray> Read(const std::string& bytes, const std::string& state = "",
                                      TorchStates* states = nullptr) {
    const NamedArrays arrays = DeserializeTorchFile(runtime, bytes, "net.pth", state, states);
    CHECK(std::is_sorted(arrays.names.begin(), arrays.names.end()));
    std::map<std::string, NDArray> result;
    for (size_t i = 0; i < arrays.names.size(); ++i) result[arrays.names[i]] = arrays.arrays[i];
    return result;
  }
  std::string ErrorOf(const std::string& bytes, const std::string& state = "") {
    try {
      DeserializeTorchFile(runtime, bytes, "net.pth", state);
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kData);
      return error.what();
    }
  }
  bool Refuses(const std::string& bytes, const std::string& part) {
    const std::string error = ErrorOf(bytes);
    INFO(error);
    const bool says = error.starts_with("net.pth: ") && error.find(part) != std::string::npos;
    CHECK(says);
    return says;
  }
  // The error of a file of an object and two storages of four float32 each.
  bool Refused(const std::string& object, const std::string& part) {
    const Storages data = {{"0", std::string(16, '\0')}, {"1", std::string(16, '\0')}};
    return Refuses(ZipFile(object, data), part);
  }
};

inline const std::string kFour = Storage("FloatStorage", "0", 4);
inline const std::string kFourFloats = Bytes<float>({1, 2, 3, 4});

}  // namespace mxtrain::test
