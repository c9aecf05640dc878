// SPDX-License-Identifier: Apache-2.0
#pragma once
// Temporary space that grows on demand, for users that know the size only when they run.
#include <cstdint>
#include <memory>

#include "mxtrain/base/macros.h"
#include "mxtrain/storage/storage.h"

namespace mxtrain {

class ResourceManager;

class MXTRAIN_API GrowingSpace {
 public:
  virtual ~GrowingSpace() = default;
  // At least this many bytes, 64-byte aligned, contents undefined; null for none. Valid until the
  // next call. `who` is named if memory is exhausted (kMemory).
  virtual void* Get(int64_t bytes, const char* who) = 0;
};

// A block of a device's pool: grows to the largest size that was requested and keeps it. Used by
// one operation at a time (ResourceManager::TakeSpace). Growing waits for the work of the block's
// stream, which may still use the smaller one.
class MXTRAIN_API TempSpace final : public GrowingSpace {
 public:
  // Created by a ResourceManager only.
  TempSpace(ResourceManager& manager, RunContext on) : manager_(manager), on_(on) {}
  // Nothing may use the space any more.
  ~TempSpace() override;
  TempSpace(const TempSpace&) = delete;
  TempSpace& operator=(const TempSpace&) = delete;

  void* Get(int64_t bytes, const char* who) override;

 private:
  friend class ResourceManager;
  friend struct GiveBack;
  void Release();  // returns the block to the storage

  ResourceManager& manager_;
  const RunContext on_;
  Storage::Handle block_;  // of the operation that has taken the space
};

struct MXTRAIN_API GiveBack {
  void operator()(TempSpace* space) const;
};
// A space that is taken; given back at the end. With a stream, that may be once the work is issued.
using SpaceLease = std::unique_ptr<TempSpace, GiveBack>;

}  // namespace mxtrain
