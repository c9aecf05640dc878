#pragma once
// Where the sources and the build of the running test lie.
#include <filesystem>

namespace mxtrain::test {

std::filesystem::path SourceDir();
std::filesystem::path BinaryDir();

}  // namespace mxtrain::test
