// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/safetensors_shards.h"

#include <filesystem>
#include <map>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"

namespace mxtrain {
namespace {

constexpr std::string_view kIndexEnd = ".safetensors.index.json", kShardEnd = ".safetensors";
constexpr size_t kMostIndexBytes = size_t{64} << 20;
constexpr size_t kMostShards = 1000;

// Whether it is the name of a file in the same folder.
bool IsPlainName(const std::string& name) {
  return name.size() > kShardEnd.size() && name.ends_with(kShardEnd) && !name.starts_with('.') &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

// Names of arrays by file.
std::map<std::string, std::set<std::string>> ParseIndex(std::string_view text,
                                                        const std::string& file) {
  const FileJson index = ReadJsonOf(file + " is not an index of safetensors files", text);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) {
    Throw(
        ErrorKind::kData,
        "{} is not an index of safetensors files: it has no map 'weight_map' from names of arrays "
        "to files",
        file);
  }
  std::map<std::string, std::set<std::string>> arrays;
  for (const auto& [name, shard] : map->items()) {
    const std::string in = shard.is_string() ? shard.get<std::string>() : "";
    if (!IsPlainName(in)) {
      Throw(ErrorKind::kData,
            "{}: the array '{}' is in '{}', which is not the name of a .safetensors file in the "
            "same folder",
            file, Shortened(name), Shortened(in));
    }
    arrays[in].insert(name);
    if (arrays.size() > kMostShards)
      Throw(ErrorKind::kData, "{} lists more than {} files", file, kMostShards);
  }
  return arrays;
}

}  // namespace

bool IsSafetensorsIndex(std::string_view path) {
  return path.ends_with(kIndexEnd);
}

std::vector<std::string> ShardsOf(std::string_view index, const std::string& file_name) {
  std::vector<std::string> shards;
  for (const auto& [shard, names] : ParseIndex(index, file_name)) shards.push_back(shard);
  return shards;
}

NamedArrays LoadSafetensorsShards(Runtime& runtime, const std::string& index_file,
                                  UnreadArrays* unread) {
  const auto listed = ParseIndex(ReadFile(index_file, kMostIndexBytes), index_file);
  const std::filesystem::path folder = std::filesystem::path(index_file).parent_path();
  std::map<std::string, NDArray> all;
  for (const auto& [shard, names] : listed) {
    const std::string path = (folder / shard).string();
    UnreadArrays left;
    const NamedArrays arrays =
        DeserializeSafetensors(runtime, ReadFile(path), path, unread ? &left : nullptr);
    for (size_t i = 0; i < arrays.names.size(); ++i) {
      if (!names.contains(arrays.names[i])) {
        Throw(ErrorKind::kData, "{} holds the array '{}', which {} does not list for it", path,
              arrays.names[i], index_file);
      }
      all[arrays.names[i]] = arrays.arrays[i];
    }
    for (const std::string& name : names) {
      if (!all.contains(name) && !left.contains(name))
        Throw(ErrorKind::kData, "{} lacks the array '{}', which {} lists for it", path, name,
              index_file);
    }
    if (unread) unread->merge(left);
  }
  NamedArrays sorted;
  for (const auto& [name, array] : all) {
    sorted.names.push_back(name);
    sorted.arrays.push_back(array);
  }
  return sorted;
}

}  // namespace mxtrain
