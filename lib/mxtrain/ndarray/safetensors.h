#pragma once
// Files of named arrays in the safetensors format (github.com/huggingface/safetensors), which holds numbers and nothing that could run:
//   u64 bytes of the header | header (JSON: name -> {dtype, shape, data_offsets}, and "__metadata__" of strings) | bytes of the arrays;
//   little-endian, offsets counted from the end of the header.
#include <map>
#include <string>
#include <string_view>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Plain arrays on the CPU, in the order of their names. Throws kData with the array's name for a file that is cut, whose header is no JSON or
// lies about the bytes, or that holds an element type that is not here (dtype.h), before any array is made.
MXTRAIN_API NamedArrays DeserializeSafetensors(Runtime& runtime, std::string_view bytes, const std::string& file_name);
// Waits for each array. `metadata` is text for whoever reads the file.
MXTRAIN_API std::string SerializeSafetensors(const std::map<std::string, NDArray>& arrays, const std::map<std::string, std::string>& metadata = {});

}  // namespace mxtrain
