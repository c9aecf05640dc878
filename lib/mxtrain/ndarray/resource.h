// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that an operator requests besides its arrays.
#include "mxtrain/base/philox.h"
#include "mxtrain/ndarray/tblob.h"

namespace mxtrain {

struct ResourceRequest {
  enum Type { kRandom, kTempSpace };
  Type type = kTempSpace;
  int64_t bytes = 0;  // of kTempSpace: fixed at planning, part of the memory plan
};

// Changes every step and is read by kernels through a pointer, so a captured step stays valid.
struct RandomState {
  uint64_t seed = 0;
  uint64_t step = 0;  // training forward passes so far
};

// The draws of one node in one step, by value, for device kernels.
struct RandomDraws {
  uint64_t seed = 0, stream = 0, step = 0;
  MXTRAIN_HD float Uniform(uint64_t index) const { return UniformAt(seed, stream, step, index); }
  MXTRAIN_HD float Normal(uint64_t index) const { return NormalAt(seed, stream, step, index); }
};

// The resource granted for request i is `requested[i]`.
struct MXTRAIN_API Resource {
  ResourceRequest::Type type = ResourceRequest::kTempSpace;
  void* space = nullptr;
  int64_t bytes = 0;
  const RandomState* random = nullptr;
  uint64_t stream = 0;   // hash of the drawing node's name: stable under graph rewrites
  const char* who = "";  // node, for errors

  // `n` elements of scratch; throws kBug, naming the operator, if more than requested.
  template <typename T>
  T* GetSpace(int64_t n) const {
    return static_cast<T*>(Check(n * static_cast<int64_t>(sizeof(T))));
  }
  // This node's draws in the current step. Device code must copy them: `random` is host memory.
  RandomDraws Draws() const { return {random->seed, stream, random->step}; }
  float Uniform(uint64_t index) const { return Draws().Uniform(index); }
  float Normal(uint64_t index) const { return Draws().Normal(index); }

 private:
  void* Check(int64_t wanted) const;
};

}  // namespace mxtrain
