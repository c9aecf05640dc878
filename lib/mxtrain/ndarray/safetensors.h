// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of named arrays in the safetensors format (github.com/huggingface/safetensors), which
// contains no executable content:
//
//   u64 bytes of the header | header | bytes of the arrays
//
// The header is JSON: name -> {dtype, shape, data_offsets}, and "__metadata__" of strings. Numbers
// are little-endian; offsets count from the end of the header.
#include <map>
#include <string>
#include <string_view>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Arrays whose elements no array here can hold, by name, each with why: C64, F8 and smaller floats
// (what such numbers stand for, only a scale tells), a U64 above int64.
using UnreadArrays = std::map<std::string, std::string>;

// Plain arrays on the CPU, in the order of their names. Elements of types that arrays do not have
// become those of a type that holds them: BOOL is uint8, I8, I16 and U16 are int32, U32 and U64
// int64. What is left goes to *unread; without it the first is an error. Throws kData with the
// array's name for a truncated file and for a header that is not JSON or contradicts the data,
// before any array is created.
MXTRAIN_API NamedArrays DeserializeSafetensors(Runtime& runtime, std::string_view bytes,
                                               const std::string& file_name,
                                               UnreadArrays* unread = nullptr);
// Waits for each array. `metadata`: free text. Throws kData for a name that is not UTF-8.
MXTRAIN_API std::string SerializeSafetensors(
    const std::map<std::string, NDArray>& arrays,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace mxtrain
