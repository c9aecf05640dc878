// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "mxtrain/ndarray/tblob.h"

namespace mxtrain::test {

// The elements of a vector as a plain array on the CPU. The vector keeps them.
template <typename T>
TBlob BlobOf(std::vector<T>& values, const TShape& shape) {
  return {values.data(), shape, DTypeOf<T>::value, Layout(), Context::cpu()};
}

}  // namespace mxtrain::test
