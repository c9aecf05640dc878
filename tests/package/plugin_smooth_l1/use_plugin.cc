// SPDX-License-Identifier: Apache-2.0
// Loads the plug-in named on the command line and prints what its operators make of a few numbers.
#include <cstdio>
#include <vector>

#include "mxtrain/operator/imperative.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    auto operators = mxtrain::BuiltinOperators();
    operators->LoadPlugin(argv[1]);
    mxtrain::Runtime runtime({}, operators);
    const auto array = [&](const mxtrain::TShape& shape, std::vector<float> values) {
      return mxtrain::NDArray::FromVector(runtime, shape, values);
    };
    const auto print = [](const char* op, std::vector<mxtrain::NDArray> in,
                          const mxtrain::Kwargs& kwargs) {
      std::printf("%s", op);
      for (const float y : mxtrain::Invoke(op, in, kwargs)[0].ToVector()) std::printf(" %g", y);
      std::printf("\n");
    };
    print("my_smooth_l1", {array({4}, {-3, -0.25, 0.25, 3})}, {{"scalar", "2"}});
    const auto gamma = array({2}, {1, 10}), beta = array({2}, {0.5, 0});
    print("my_layer_norm", {array({2, 2}, {3, 1003, 40, -960}), gamma, beta}, {});
    print("my_channel_scale", {array({1, 2, 2}, {1, 2, 3, 4}), gamma, beta}, {});
  } catch (const mxtrain::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
