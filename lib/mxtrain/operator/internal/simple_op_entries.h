// SPDX-License-Identifier: Apache-2.0
#pragma once
// The declarations of SimpleOps are kept in entries beside the registry's tables; a plug-in may
// extend an existing one. Private to this module.
#include <functional>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Saves every entry of the registry; the returned function restores them.
std::function<void()> KeepSimpleOps(const OperatorRegistry& registry);

}  // namespace mxtrain
