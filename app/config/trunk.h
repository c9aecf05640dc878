// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trunk: the layers of a net that comes with the program up to one of them, as the beginning of
// another net. What follows are written layers (net.layers) or those of a decoder (net.decoder).
//
// Where a trunk can end is said by its configuration, as variables whose values are names of its
// layers, the stages: stride2 to stride32, the last layers that are so many times as coarse as the
// input, and features, what the last layer of a classifier reads. A decoder takes them by
// "${stride32}"; net.until names one, or any layer.
#include <cstdint>

#include "app/config/diagnostic.h"
#include "app/config/value.h"

namespace mxtrain::config {

// The input that a trunk reads.
inline constexpr const char* kTrunkInput = "data";

struct TrunkEnd {
  const Value& use;  // net.use, the name of the net
  const Member* until =
      nullptr;                  // net.until; null: behind the last layer that is taken by its name
  const Value* vars = nullptr;  // those that are written beside it
};

// Cuts the layers of a net (`parts`: its configuration) at `end` and puts `layers`, a list or null,
// in their place. With `until` the net does not bring its initializer, which is chosen for its own
// last layer: one that looks at the number of outputs gives a head of one number weights of 1.
// Reports an unknown end, and layers that take what is cut off.
void ContinueTrunk(const TrunkEnd& end, Value layers, Value* parts, Diagnostics* diagnostics);

// Of a net with several inputs (net.inputs, `inputs`): its trunk reads `data`. Reports inputs
// without it.
void ReadTrunkInput(const Value& use, const Member& inputs, Value* parts, Diagnostics* diagnostics);

// Of the layers that a decoder takes by "${strideN}": the largest N; 0 without any.
int64_t LargestStride(const Value& layers);

}  // namespace mxtrain::config
