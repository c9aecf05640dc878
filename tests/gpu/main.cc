// Tests that need a GPU. Without one the program ends with 77, which ctest shows as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "mxtrain/device/backend.h"

int main(int argc, char** argv) {
  const auto gpu = mxtrain::NewGpuBackend();
  if (gpu->DeviceCount() == 0) {
    std::cout << "skipped: " << gpu->WhyAbsent() << "\n";
    return 77;
  }
  const mxtrain::DeviceInfo info = gpu->Describe(0);
  std::cout << info.name << ", compute capability " << info.capability << "\n";
  for (const mxtrain::Version& v : gpu->Versions()) std::cout << v.of << " " << v.version << "\n";
  return doctest::Context(argc, argv).run();
}
