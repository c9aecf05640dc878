// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random nets: branches and joins, in-place chains, aliases, operators with several outputs, one
// array read twice by one operator, shared weights, several heads that others may also read.
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// With `differentiable` false also BlockGrad and Dropout. The same net for the same seed.
SmallNet RandomNet(const OperatorRegistry& registry, unsigned seed, bool differentiable);

// The number of random nets of a test; MXTRAIN_RANDOM_NETS overrides it.
unsigned NumRandomNets(unsigned otherwise);

}  // namespace mxtrain::test
