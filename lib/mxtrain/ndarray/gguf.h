// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of GGUF (github.com/ggml-org/ggml, docs/gguf.md, version 3), which llama.cpp and others
// read: facts by key, and named arrays. Only written. Numbers are little-endian:
//
//   "GGUF", u32 3, u64 arrays, u64 facts | facts | arrays: name, u32 axes, u64 lengths from the
//   last axis to the first, u32 type, u64 offset | zeros up to 32 | bytes, each array's up to 32
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Collects, then writes. Serves one thread at a time.
class MXTRAIN_API GgufWriter {
 public:
  using Fact = std::variant<bool, uint32_t, float, std::string, std::vector<std::string>,
                            std::vector<int32_t>>;

  // In the order of the file. A key is there once.
  void Set(std::string key, Fact value);
  // Stored as float32, float16 or bfloat16. Values that are too large for float16 become infinite;
  // Write refuses them.
  void Add(std::string name, NDArray array, DType type);

  // The file appears whole or not at all. Throws kData, naming the array, for a finite value that
  // is infinite in its type.
  void Write(const std::string& path) const;

 private:
  struct Array {
    std::string name;
    NDArray data;
    DType type;
    int64_t bytes() const { return data.shape().Size() * SizeOf(type); }
  };
  std::string Beginning() const;

  std::vector<std::pair<std::string, Fact>> facts_;
  std::vector<Array> arrays_;
};

}  // namespace mxtrain
