// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/data_dir.h"

// 77, which ctest shows as skipped, if no case failed but one found no data.
int main(int argc, char** argv) {
  const int failed = doctest::Context(argc, argv).run();
  return failed == 0 && mxtrain::test::data_missing ? 77 : failed;
}
