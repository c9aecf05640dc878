// SPDX-License-Identifier: Apache-2.0
#pragma once
// State shared by the copies of an array's handle. Private to this module.
#include <atomic>
#include <memory>
#include <string>

#include "mxtrain/base/mutex.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// The bytes of an array, allocated on first use: an array waiting in the engine holds no memory.
// Thread-safe.
class ArrayMemory {
 public:
  ArrayMemory(Storage& storage, Context on, int64_t size, std::string holder)
      : ctx(on), bytes(size), who(std::move(holder)), storage_(storage) {}
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
  Mutex mutex_;
  Storage::Handle handle_ MXTRAIN_GUARDED_BY(mutex_);
  bool retired_ MXTRAIN_GUARDED_BY(mutex_) = false;
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
