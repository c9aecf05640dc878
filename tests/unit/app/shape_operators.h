// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators with names, parameters and shapes but no kernels: tests of the net grammar do not
// depend on the real operators.
#include <memory>

#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

// Adds operators that the registry lacks.
void AddShapeOperators(OperatorRegistry& registry);
std::shared_ptr<OperatorRegistry> ShapeOperators();

}  // namespace mxtrain::test
