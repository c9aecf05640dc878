// SPDX-License-Identifier: Apache-2.0
#pragma once
// What engines check and derive when a frozen sequence is created.
#include <cstddef>
#include <span>
#include <vector>

#include "mxtrain/engine/engine.h"

namespace mxtrain::engine {

struct PortUse {
  bool written = false;  // some operation writes it; else it is only read
  bool renewed = false;  // some operation renews it
  std::vector<int> ops;  // the operations that name it, ascending, each once
};

// Removes duplicates from every `after`, `reads` and `writes` (a port both read and written counts
// as written) and returns the use of each port. Throws kBug for an edge that does not lead back, a
// port out of range, a renewed port that is not written and an operation without a function.
std::vector<PortUse> CheckSequence(std::span<SequenceOp> ops, int num_ports);

// kBug unless a push binds every port.
void CheckPortCount(size_t expected, size_t bound);

}  // namespace mxtrain::engine
