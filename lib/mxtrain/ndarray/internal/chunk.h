// SPDX-License-Identifier: Apache-2.0
#pragma once
// State shared by the copies of an array's handle. Private to this module.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// The bytes of an array, allocated on first use: an array waiting in the engine holds no memory.
// Thread-safe.
class ArrayMemory {
 public:
  ArrayMemory(Storage& storage, Context ctx, int64_t bytes, std::string who)
      : ctx(ctx), bytes(bytes), who(std::move(who)), storage_(storage) {}
  ~ArrayMemory() { storage_.Free(handle_); }
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  // Null if there are no bytes. Throws kMemory; a later call retries.
  char* Take();
  // The last handle is gone; the engine destroys this after everything pushed.
  void Retire();

  const Context ctx;
  const int64_t bytes;
  const std::string who;

 private:
  Storage& storage_;
  std::atomic<char*> data_{nullptr};
  std::mutex mutex_;
  Storage::Handle handle_;  // guarded by mutex_, as retired_
  bool retired_ = false;
};

// The memory and the variable that orders access to it. The destructor frees the bytes after
// everything pushed on the variable.
struct NDArray::Chunk {
  Chunk(Runtime& runtime, Context ctx, int64_t bytes, std::string who);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  Runtime& runtime;
  std::unique_ptr<ArrayMemory> memory;
  engine::VarHandle var = nullptr;
};

}  // namespace mxtrain
