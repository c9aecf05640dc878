#pragma once
#include <string>

namespace mxtrain::cuda {

// "2.28.9", or why there is none. Looks for the library, which is opened for that.
std::string NcclVersion();

}  // namespace mxtrain::cuda
