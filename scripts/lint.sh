#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the sources without building them.
#   scripts/lint.sh            all of: format threads docs tidy
#   scripts/lint.sh PART...    format    clang-format of every C++ and CUDA file (--fix PART formats them)
#                              threads   Clang's thread-safety analysis of what no build with Clang compiles (scripts/thread_safety.sh)
#                              docs      Doxygen over the public headers, without a warning; writes build/doxygen/html
#                              tidy      clang-tidy of the .cc files that differ from the commit MXTRAIN_TIDY_BASE; MXTRAIN_TIDY_BASE=all:
#                                        of every one. Needs a configured build folder (MXTRAIN_TIDY_BUILD, default build/dev)
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

# tool NAME VERSION: that version, else the default one.
tool() { command -v "$1-$2" || command -v "$1" || { echo "lint.sh: $1 not found; run scripts/install_deps.sh --development" >&2; exit 1; }; }
sources() { git ls-files "$@"; }

lint_format() {
  local program
  program=$(tool clang-format 14)
  sources '*.cc' '*.h' '*.cu' '*.cuh' | xargs -P "$jobs" -n 40 "$program" "$@"
}

lint_threads() { scripts/thread_safety.sh; }

lint_docs() {
  tool doxygen "" >/dev/null
  mkdir -p build
  doxygen scripts/doxygen/Doxyfile
}

lint_tidy() {
  local base=${MXTRAIN_TIDY_BASE:-} build=${MXTRAIN_TIDY_BUILD:-build/release} program files
  if [[ -z $base ]]; then
    echo "lint.sh: tidy: skipped: MXTRAIN_TIDY_BASE is not set"
    return
  fi
  program=$(tool clang-tidy 19)
  [[ -f $build/compile_commands.json ]] || { echo "lint.sh: tidy: $build is not configured" >&2; exit 1; }
  if [[ $base == all ]]; then
    files=$(sources 'lib/mxtrain/*.cc' 'app/*.cc')
  else
    files=$(git diff --name-only --diff-filter=d "$base" -- 'lib/mxtrain/*.cc' 'app/*.cc')
  fi
  # What this build does not compile (the CUDA backend, the other version of oneDNN) has no flags to read it with.
  files=$(for file in $files; do if grep -q "\"file\": \"[^\"]*/$file\"" "$build/compile_commands.json"; then echo "$file"; fi; done)
  [[ -n $files ]] || return 0
  # The compiler's own warnings are the build's affair.
  xargs -P "$jobs" -n 4 "$program" -p "$build" --quiet --extra-arg=-Wno-everything <<<"$files" 2>/dev/null
}

parts=()
fix=0
for argument in "$@"; do
  case $argument in
    --fix) fix=1 ;;
    format | threads | docs | tidy) parts+=("$argument") ;;
    *) echo "lint.sh: unknown argument '$argument'; it takes --fix, format, threads, docs and tidy" >&2; exit 2 ;;
  esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=(format threads docs tidy)
for part in "${parts[@]}"; do
  echo "== lint: $part"
  case $part in
    format) if [[ $fix -eq 1 ]]; then lint_format -i; else lint_format --dry-run --Werror; fi ;;
    *) "lint_$part" ;;
  esac
done
