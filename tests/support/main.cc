// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/data_dir.h"

// For LeakSanitizer: what Clang's OpenMP runtime keeps of its threads until the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libomp\n";
}

// 77, which ctest shows as skipped, if no case failed but one found no data.
int main(int argc, char** argv) {
  const int failed = doctest::Context(argc, argv).run();
  return failed == 0 && mxtrain::test::data_missing ? 77 : failed;
}
