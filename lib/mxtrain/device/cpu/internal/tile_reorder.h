// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reorders between two layouts that block the same two axes by the same sizes, such as those of a
// convolution's weights ("ABcd16b16a", "BcdA16a16b"): moves whole tiles, transposed if the inner
// blocks are in the other order.
#include "mxtrain/device/layout.h"

namespace mxtrain {

// Returns false and does nothing if the layouts are not such a pair. Shapes and types match; the
// padding of `dst` becomes that of `src`.
bool ReorderTiles(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

}  // namespace mxtrain
