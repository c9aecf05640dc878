// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source and build folders of the running test.
#include <filesystem>

namespace mxtrain::test {

std::filesystem::path SourceDir();
std::filesystem::path BinaryDir();

}  // namespace mxtrain::test
