#pragma once
// Nets of images made at random out of what fuses and what stands in its way: convolutions, batch norms, ReLU, clip to 0 .. 6, sums through
// either input of one term or two, batch norms with a second reader, concatenation, pooling.
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// The same net for the same seed; its heads are losses of every array that nothing reads.
SmallNet RandomImageNet(const OperatorRegistry& registry, unsigned seed);

}  // namespace mxtrain::test
