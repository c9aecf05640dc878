#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes hours: everything of which `scripts/test.sh --full` runs a sample, and checks that it leaves to the night. A machine with two
# cores takes some eight hours.
#   scripts/nightly.sh            all parts, in this order; goes on after one that fails, and exits with 1 at the end
#   scripts/nightly.sh PART...    full        test.sh --full with every request and type of an operator's case, 1000 programs of the engine,
#                                             100 random nets of the executor and every configuration under each sanitizer
#                                 teams       every request of an operator's case on teams, under AddressSanitizer
#                                 includes    a build without oneDNN, ONNX and curl, each source and each public header by itself
#                                 faults      every operation on files fails once (tests/cli/faults_test.sh)
#                                 fuzz        libFuzzer, ten minutes a target (MXTRAIN_FUZZ_SECONDS)
#                                 mutations   every fault of tests/mutations must turn its tests red
#                                 tidy        clang-tidy of every source
#                                 cuda        with nvcc: the CUDA backend for all architectures, and its package
set -euo pipefail
cd "$(dirname "$0")/.."

nightly_full() {
  MXTRAIN_CASE_TRIALS=1 MXTRAIN_CASE_TYPES=1 MXTRAIN_CASE_FLOAT64=1 MXTRAIN_CONFIGS=1 MXTRAIN_ENGINE_PROGRAMS=1000 \
    MXTRAIN_RANDOM_NETS=100 MXTRAIN_SKIP_LONG=0 scripts/test.sh --full
}
nightly_teams() {
  cmake --preset asan
  ninja -C build/asan --quiet test_operators_teams
  ctest --test-dir build/asan --output-on-failure -R '^test_operators_teams$' --timeout 14400
}
nightly_includes() {
  cmake -S . -B build/plain -G Ninja -DCMAKE_BUILD_TYPE=Debug -DMXTRAIN_WITH_ONEDNN=OFF -DMXTRAIN_WITH_ONNX=OFF -DMXTRAIN_WITH_CURL=OFF
  ninja -C build/plain --quiet all all_verify_interface_header_sets
}
nightly_faults() {
  cmake --preset release
  ninja -C build/release --quiet
  MXTRAIN_FAULTS=all ctest --test-dir build/release --output-on-failure -R '^cli_faults_test$' --timeout 14400
}
nightly_fuzz() { scripts/fuzz.sh "${MXTRAIN_FUZZ_SECONDS:-600}"; }
nightly_mutations() {
  local list failed=0
  cmake --preset asan
  for list in tests/mutations/*.txt; do tests/mutations/run.sh "$(basename "$list" .txt)" || failed=1; done
  return $failed
}
nightly_tidy() {
  cmake --preset dev
  MXTRAIN_TIDY_BASE=all scripts/lint.sh tidy
}
nightly_cuda() {
  if ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
    echo "nightly.sh: cuda: skipped: nvcc not found"
    return
  fi
  scripts/package.sh --cuda
}

all=(full teams includes faults fuzz mutations tidy cuda)
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "nightly.sh: unknown part '$part'; it takes: ${all[*]}" >&2; exit 2; }
done
scripts/install_deps.sh --development
failed=()
for part in "${parts[@]}"; do
  echo "== nightly: $part"
  # A process of its own: -e holds in it whatever becomes of its exit code.
  (set -e; "nightly_$part") & wait $! || failed+=("$part")
done
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "nightly.sh: failed: ${failed[*]}" >&2
  exit 1
fi
