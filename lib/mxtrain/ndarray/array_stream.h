// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays in the .params format (NamedArrays in ndarray.h), read and written in pieces, without a
// buffer for the whole file.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

using WritePiece = std::function<void(std::string_view)>;
// Fills the span from where the last call ended, or throws.
using ReadPiece = std::function<void(std::span<char>)>;

// Waits for each array. Throws kConfig for more than 65536, the limit of a file.
MXTRAIN_API void WriteArrays(const NamedArrays& arrays, const WritePiece& write);
MXTRAIN_API uint64_t BytesOf(const NamedArrays& arrays);  // that WriteArrays writes

struct ArrayRecord {
  bool empty = true;  // no array: an NDArray without a shape
  TShape shape;
  DType type = DType::kUnknown;
  uint64_t at = 0;  // of its elements, in bytes from the beginning
};

// Index of the arrays written by WriteArrays.
class MXTRAIN_API ArrayIndex {
 public:
  // Reads all `bytes` bytes. Throws kData with `file_name` and the offset if they are malformed or
  // not supported.
  ArrayIndex(const ReadPiece& read, uint64_t bytes, std::string file_name);
  // Loads the arrays to the CPU. `read` starts at the same position as the constructor's.
  NamedArrays Load(Runtime& runtime, const ReadPiece& read) const;

 private:
  std::string file_name_;
  std::vector<ArrayRecord> records_;
  std::vector<std::string> names_;
};

}  // namespace mxtrain
