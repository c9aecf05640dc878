#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks with Clang that members are used under the locks that guard them (lib/mxtrain/base/mutex.h).
#   scripts/thread_safety.sh [FILE.cc...]    by default those that the preset asan, whose compiler checks the others, does not build
# Ends with 1 if a file violates an annotation. Needs no build; without clang++-19, and without CUDA's headers for what includes them, it says what
# it has skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang++-19 >/dev/null; then
  echo "thread_safety.sh: skipped: clang++-19 not found; run scripts/install_deps.sh --development"
  exit 0
fi

flags=(-std=c++20 -fsyntax-only -Ilib -I. -isystem /usr/include/opencv4 -isystem /usr/local/cuda/include
  -isystem "/usr/lib/$(uname -m)-linux-gnu/openmpi/include" -DOMPI_SKIP_MPICXX
  -Wno-everything -Werror -Wthread-safety -Wthread-safety-beta)
if clang++-19 "${flags[@]}" -x c++ - 2>/dev/null <<<'#include "mxtrain/base/mutex.h"
mxtrain::Mutex mutex;
int value MXTRAIN_GUARDED_BY(mutex);
int Read() { return value; }'; then
  echo "thread_safety.sh: the annotations have no effect: an access without its lock is accepted" >&2
  exit 1
fi

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  files=(lib/mxtrain/device/cuda/*.cc lib/mxtrain/device/mpi/*.cc)
fi
if ! clang++-19 "${flags[@]}" -x c++ -include cudnn.h /dev/null 2>/dev/null; then
  echo "thread_safety.sh: lib/mxtrain/device/cuda is skipped: CUDA's and cuDNN's headers not found"
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^lib/mxtrain/device/cuda/')
fi
if ! clang++-19 "${flags[@]}" -x c++ -include mpi.h /dev/null 2>/dev/null; then
  echo "thread_safety.sh: lib/mxtrain/device/mpi is skipped: Open MPI's headers not found"
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^lib/mxtrain/device/mpi/')
fi
echo "thread_safety.sh: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang++-19 "${flags[@]}" || exit 1
