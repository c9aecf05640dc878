// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators with a definition but no kernels, for tests of graphs, shapes and files that must not
// depend on the real ones. They have the real names, arguments and defaults (reduced):
// FullyConnected, Activation, BatchNorm, Concat, SliceChannel, SoftmaxOutput, LeakyReLU, Pooling,
// elemwise_add, Cast, argmax, _random_uniform, _minus_scalar, _rminus_scalar.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddTinyOperators(OperatorRegistry& registry);

}  // namespace mxtrain::test
