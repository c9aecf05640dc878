#pragma once
// What the copies of an array's handle share. Private to this module.
#include <string>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// The bytes and the variable that orders access to them. Its end frees the bytes after all that was pushed on the variable.
struct NDArray::Chunk {
  Chunk(Runtime& runtime, Context ctx, int64_t bytes, std::string who);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  Runtime& runtime;
  const Context ctx;
  const std::string who;
  Storage::Handle handle;
  engine::VarHandle var = nullptr;
};

}  // namespace mxtrain
