// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operator that changes an auxiliary state in Forward, which no layer of ours does, and uses
// everything else that an operator can be given.
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// Adds CountedSquare: y = x^2 + count, where the state `count` counts the training passes. It asks
// for scratch of both kinds and saved bytes (the gradient reads x from them alone). Only the CPU
// has a kernel.
void AddCountedSquare(OperatorRegistry* registry);

// Two layers of it between others. The output of the first has two readers, so its gradient is a
// sum.
SmallNet SquareNet(const OperatorRegistry& registry);

}  // namespace mxtrain::test
