// SPDX-License-Identifier: Apache-2.0
#pragma once
// For operators whose result for one example depends on the whole batch: batch normalization.
//
// Where a batch is divided into parts, among workers or processes, such an Operator runs in two
// stages: it sums over its part, and continues with the sums over all parts. An Operator that can
// do so implements BatchSums beside Operator, on the CPU. Both stages get the arguments of the
// undivided call; the bytes of workspace and saved stay as they are in between.
#include <cstdint>
#include <span>

#include "mxtrain/operator/operator.h"

namespace mxtrain {

class BatchSums {
 public:
  virtual ~BatchSums() = default;
  // How many sums a pass needs, fixed when the Operator is made. 0: it runs undivided.
  virtual int64_t NumForwardSums() const = 0;
  virtual int64_t NumBackwardSums() const = 0;
  // Writes the sums over this part, and nothing else that the second stage writes.
  virtual void SumForward(const ForwardArgs& args, std::span<double> sums) = 0;
  virtual void ForwardWith(const ForwardArgs& args, std::span<const double> sums) = 0;
  virtual void SumBackward(const BackwardArgs& args, std::span<double> sums) = 0;
  virtual void BackwardWith(const BackwardArgs& args, std::span<const double> sums) = 0;
};

}  // namespace mxtrain
