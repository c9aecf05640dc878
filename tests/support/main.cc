// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/data_dir.h"

// For LeakSanitizer: what Clang's OpenMP runtime keeps of its threads until the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libomp\n";
}

// With MXTRAIN_SKIP_LONG=1 without the cases of the suite "long", which take minutes under a slow
// sanitizer. 77, which ctest shows as skipped, if no case failed but one found no data.
int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const char* skip = std::getenv("MXTRAIN_SKIP_LONG");
  if (skip && std::strcmp(skip, "1") == 0) context.addFilter("test-suite-exclude", "long");
  const int failed = context.run();
  return failed == 0 && mxtrain::test::data_missing ? 77 : failed;
}
