#pragma once
// Changes of layout between two forms that cut the same two axes into the same blocks, as the forms of a convolution's weights do
// ("ABcd16b16a", "BcdA16a16b"): whole tiles move, turned where the inner blocks stand in the other order.
#include "mxtrain/device/layout.h"

namespace mxtrain {

// False, with nothing done, where the layouts are not such a pair. Shapes and types agree; the padding of `dst` becomes that of `src`.
bool ReorderTiles(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

}  // namespace mxtrain
