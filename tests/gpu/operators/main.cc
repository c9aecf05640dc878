// The cases of all operators, on a GPU: against the references in double, under every request kind.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/gpu/run_tests.h"
#include "tests/support/operator_case.h"

int main(int argc, char** argv) {
  mxtrain::test::TestOn(mxtrain::Context::gpu(0));
  return mxtrain::test::RunGpuTests(argc, argv);
}
