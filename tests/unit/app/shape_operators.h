#pragma once
// Operators that have names, parameters and shapes, and no kernels: for tests of the net grammar that must not depend on the real ones.
#include <memory>

#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

// Adds those that the registry does not have.
void AddShapeOperators(OperatorRegistry& registry);
std::shared_ptr<OperatorRegistry> ShapeOperators();

}  // namespace mxtrain::test
