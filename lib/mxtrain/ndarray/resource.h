// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that an operator requests besides its arrays.
#include <span>

#include "mxtrain/ndarray/tblob.h"
#include "mxtrain/resource/resource_manager.h"

namespace mxtrain {

struct ResourceRequest {
  enum Type { kRandom, kTempSpace };
  // Of a kTempSpace whose size the operator says when it runs.
  static constexpr int64_t kUnknownSize = -1;
  Type type = kTempSpace;
  // Of kTempSpace. A known size is part of the memory plan; space of unknown size comes from the
  // pool of the ResourceManager.
  int64_t bytes = 0;
};

// The resource granted for request i is `requested[i]`.
struct MXTRAIN_API Resource {
  ResourceRequest::Type type = ResourceRequest::kTempSpace;
  void* space = nullptr;
  int64_t bytes = 0;                    // as requested
  const RandomState* random = nullptr;  // host memory
  uint64_t stream = 0;              // hash of the drawing node's name: stable under graph rewrites
  const char* who = "";             // node, for errors
  GrowingSpace* growing = nullptr;  // of unknown size, while the operator runs
  // A copy of `random` in the memory of the GPU whose kernel draws; null for kernels of the CPU.
  const RandomState* random_on_device = nullptr;

  // `n` elements of temporary space; throws kBug, naming the operator, if that is more than
  // requested or random numbers were requested. If the size was unknown: as many as wanted, until
  // the next call; throws kMemory.
  template <typename T>
  T* GetSpace(int64_t n) const {
    return static_cast<T*>(Check(n * static_cast<int64_t>(sizeof(T))));
  }
  // This node's draws in the current step, to be read where the kernel runs.
  RandomDraws Draws() const { return {random_on_device ? random_on_device : random, stream}; }
  // On the CPU.
  float Uniform(uint64_t index) const { return Draws().Uniform(index); }
  float Normal(uint64_t index) const { return Draws().Normal(index); }

 private:
  void* Check(int64_t wanted) const;
};

// Gives the resources of unknown size a space of the pool each, for its lifetime: while the
// operator runs, or issues its work.
class MXTRAIN_API ResourceGrant {
 public:
  // `requested` must outlive the grant.
  ResourceGrant(ResourceManager& manager, RunContext ctx, std::span<Resource> requested);
  ~ResourceGrant();
  ResourceGrant(const ResourceGrant&) = delete;
  ResourceGrant& operator=(const ResourceGrant&) = delete;

 private:
  explicit ResourceGrant(std::span<Resource> requested);

  const std::span<Resource> requested_;
};

}  // namespace mxtrain
