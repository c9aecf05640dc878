// SPDX-License-Identifier: Apache-2.0
#pragma once
// The main function of test programs that need a GPU.
#include <doctest/doctest.h>

#include <iostream>

#include "mxtrain/device/backend.h"

namespace mxtrain::test {

// Without a GPU the result is 77, which ctest reports as skipped.
inline int RunGpuTests(int argc, char** argv) {
  const auto gpu = NewGpuBackend();
  if (gpu->DeviceCount() == 0) {
    std::cout << "skipped: " << gpu->WhyAbsent() << "\n";
    return 77;
  }
  const DeviceInfo info = gpu->Describe(0);
  std::cout << info.name << ", compute capability " << info.capability << "\n";
  for (const Version& v : gpu->Versions()) std::cout << v.of << " " << v.version << "\n";
  return doctest::Context(argc, argv).run();
}

}  // namespace mxtrain::test
