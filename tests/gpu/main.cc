// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/gpu/run_tests.h"

int main(int argc, char** argv) {
  return mxtrain::test::RunGpuTests(argc, argv);
}
