// SPDX-License-Identifier: Apache-2.0
#include "tests/support/build_paths.h"

namespace mxtrain::test {

std::filesystem::path SourceDir() {
  return MXTRAIN_SOURCE_DIR;
}

std::filesystem::path BinaryDir() {
  return MXTRAIN_BINARY_DIR;
}

}  // namespace mxtrain::test
