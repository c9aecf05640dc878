#pragma once
// What is said of SimpleOps lies in entries beside the registry's tables, and a plug-in may add to one that is there. Private to this module.
#include <functional>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Puts every entry that the registry has now back to what it is now.
std::function<void()> KeepSimpleOps(const OperatorRegistry& registry);

}  // namespace mxtrain
