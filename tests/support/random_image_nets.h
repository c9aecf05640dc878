// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random image nets made of fusible patterns and obstacles to fusion: convolutions, batch norms,
// ReLU, clip to 0 .. 6, sums through either input with one or two terms, batch norms with a second
// reader, concatenation, pooling.
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// The same net for the same seed; its heads are losses of every unread array.
SmallNet RandomImageNet(const OperatorRegistry& registry, unsigned seed);

}  // namespace mxtrain::test
