// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays in several safetensors files, listed by an index NAME.safetensors.index.json:
//
//   {"metadata": {...}, "weight_map": {"layer.weight": "NAME-00001-of-00002.safetensors", ...}}
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/ndarray/safetensors.h"

namespace mxtrain {

// Whether a path is named like an index.
MXTRAIN_API bool IsSafetensorsIndex(std::string_view path);

// The names of the files that an index lists, sorted. Throws kData for an index that is not one,
// and for a name that is not that of a .safetensors file in the folder of the index.
MXTRAIN_API std::vector<std::string> ShardsOf(std::string_view index, const std::string& file_name);

// The arrays of all files, in the order of their names; plain, on the CPU. One file is in memory at
// a time. Throws as DeserializeSafetensors, ShardsOf, kFileSystem for a file that cannot be read,
// and kData for an array that its file lacks, or that the index does not list for it. `unread`: as
// of DeserializeSafetensors.
MXTRAIN_API NamedArrays LoadSafetensorsShards(Runtime& runtime, const std::string& index_file,
                                              UnreadArrays* unread = nullptr);

}  // namespace mxtrain
