// SPDX-License-Identifier: Apache-2.0
// Loads the plug-in named on the command line and prints my_smooth_l1 of a few numbers.
#include <cstdio>
#include <vector>

#include "mxtrain/operator/imperative.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    auto operators = mxtrain::BuiltinOperators();
    operators->LoadPlugin(argv[1]);
    mxtrain::Runtime runtime({}, operators);
    const auto x = mxtrain::NDArray::FromVector(runtime, {4}, {-3, -0.25, 0.25, 3});
    for (const float y : mxtrain::Invoke("my_smooth_l1", {&x, 1}, {{"scalar", "2"}})[0].ToVector())
      std::printf("%g\n", y);
  } catch (const mxtrain::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
