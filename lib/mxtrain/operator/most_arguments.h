#pragma once

namespace mxtrain {

// Of arrays that one operator reads or gives, where a parameter says how many: their names are made before it shows whether a net has them, so
// that a number in a file must not stand for any amount of memory.
inline constexpr int kMostArguments = 1 << 16;

}  // namespace mxtrain
