// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers belong to the name of the node that draws them, so that they do not depend on
// fusion.

namespace mxtrain::executor {

// Attribute of a fused node: the name of its part that draws.
inline constexpr const char* kDrawnAs = "__drawn_as__";

}  // namespace mxtrain::executor
