// SPDX-License-Identifier: Apache-2.0
#pragma once
// A float32 gradient that travels as bfloat16: the way to its part of a buffer, and back.
#include "mxtrain/operator/imperative.h"

namespace mxtrain {

// Of a whole array, padding included.
int64_t StoredElements(const TensorSpec& spec);
// Where the next array may begin in a buffer.
int64_t AlignedInBuffer(int64_t bytes);

class RoundedGradient {
 public:
  // `buffer` is a bfloat16 array on the gradient's device.
  RoundedGradient(const NDArray& gradient, const NDArray& buffer, int64_t byte_offset);

  const NDArray& gradient() const { return gradient_; }
  void Leave(int priority) { leave_.Push(priority); }
  void ComeBack(int priority) { come_back_.Push(priority); }

 private:
  NDArray gradient_;
  PreparedCall leave_, come_back_;
};

}  // namespace mxtrain
