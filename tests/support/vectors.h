// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short names of vectors, for tests.
#include <string>
#include <vector>

namespace mxtrain::test {

using FloatVector = std::vector<float>;
using Strings = std::vector<std::string>;

}  // namespace mxtrain::test
