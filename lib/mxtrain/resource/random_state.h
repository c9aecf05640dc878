// SPDX-License-Identifier: Apache-2.0
#pragma once
// What random numbers depend on besides the index of the draw (base/philox.h).
#include "mxtrain/base/philox.h"

namespace mxtrain {

// Changes every step and is read by kernels through a pointer, on a GPU to its own memory, so a
// captured step stays valid.
struct RandomState {
  uint64_t seed = 0;
  uint64_t step = 0;  // training forward passes so far; for calls on arrays, calls that draw
  friend bool operator==(const RandomState&, const RandomState&) = default;
};

inline constexpr int64_t kRandomStateBytes = sizeof(RandomState);

// The draws of one node, for kernels: in the step that `state` names when they read it. On a GPU
// that is when the kernel executes: at each replay of a captured graph.
struct RandomDraws {
  const RandomState* state = nullptr;  // in memory of the device that draws
  uint64_t stream = 0;
  MXTRAIN_HD float Uniform(uint64_t index) const {
    return UniformAt(state->seed, stream, state->step, index);
  }
  MXTRAIN_HD float Normal(uint64_t index) const {
    return NormalAt(state->seed, stream, state->step, index);
  }
};

}  // namespace mxtrain
