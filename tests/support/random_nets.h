#pragma once
// Nets made at random: branches and joins, chains that run in place, aliases, operators with several outputs, one array read twice by one
// operator, shared weights, several heads of which others may read.
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// Not only what has a gradient: with `differentiable` false also BlockGrad and Dropout. The same net for the same seed.
SmallNet RandomNet(const OperatorRegistry& registry, unsigned seed, bool differentiable);

// How many random nets a test makes; MXTRAIN_RANDOM_NETS sets another number.
unsigned NumRandomNets(unsigned otherwise);

}  // namespace mxtrain::test
