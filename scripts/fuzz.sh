#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets (tests/fuzz) with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and runs them one after the other.
#   scripts/fuzz.sh [SECONDS [TARGET...]]    of each target, 60 by default; all targets by default
# New corpus inputs are kept in build/fuzz/corpus/TARGET and reused next time; crashing inputs are in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang++-19 >/dev/null; then
  echo "fuzz.sh: skipped: clang++-19 not found; run scripts/install_deps.sh --development"
  exit 0
fi
seconds=${1:-60}
shift || true
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
cmake --preset fuzz >/dev/null
ninja -C build/fuzz --quiet "${targets[@]/#/fuzz_}"
failed=0
for target in "${targets[@]}"; do
  echo "== $target"
  mkdir -p "build/fuzz/corpus/$target"
  "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" 2>&1 | tail -n 12 || failed=1
done
exit $failed
