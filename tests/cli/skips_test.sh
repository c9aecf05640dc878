#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that need data that are not part of the project exit with 77 without them, which ctest shows as skipped, and do not pass.
#   skips_test.sh TEST_IO    the built executable test_io
. "$(dirname "$0")/common.sh"
test_io=$1
export MXTRAIN_DATA_DIR=$work/empty
mkdir empty

# exits CODE TEXT COMMAND...: the command exits with this code and prints this text.
exits() {
  local wanted=$1 text=$2 code
  shift 2
  checks=$((checks + 1))
  "$@" >stdout 2>stderr
  code=$?
  [ $code -eq "$wanted" ] || fail "$*: exit code $code, expected $wanted"
  grep -qF -- "$text" stdout || fail "$*: stdout lacks: $text"
}

exits 77 "skipped: no mnist; set MXTRAIN_DATA_DIR to the folder that holds it" "$test_io" --test-suite=mnist --no-skip
exits 77 "skipped: no clothing/validation; " "$test_io" --test-suite=clothing --no-skip
exits 77 "skipped: no mnist; " bash "$source_dir/tests/cli/input_formats_test.sh" mnist
# Other cases do not need them; a case that fails is not hidden by one that is skipped.
exits 0 " 0 failed" "$test_io" --test-case='csv: one file*'
mkdir -p empty/mnist && echo damaged >empty/mnist/t10k-images-idx3-ubyte
exits 1 "skipped: no clothing/validation; " "$test_io" --test-suite=mnist,clothing --no-skip
finish
