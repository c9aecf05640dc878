#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks with Clang that members are used under the locks that guard them (lib/mxtrain/base/mutex.h).
#   scripts/thread_safety.sh [FILE.cc...]    by default every source of lib/ and app/ that names a lock or includes a header that does
# Ends with 1 if a file violates an annotation. Needs no build; without clang++, and without CUDA's headers for what includes them, it says what
# it has skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang++ >/dev/null; then
  echo "thread_safety.sh: skipped: clang++ not found (package clang of Debian 12)"
  exit 0
fi

flags=(-std=c++20 -fsyntax-only -Ilib -I. -isystem /usr/include/opencv4 -isystem /usr/local/cuda/include
  -isystem "/usr/lib/$(uname -m)-linux-gnu/openmpi/include" -DOMPI_SKIP_MPICXX
  -Wno-everything -Werror -Wthread-safety -Wthread-safety-beta)
if clang++ "${flags[@]}" -x c++ - 2>/dev/null <<<'#include "mxtrain/base/mutex.h"
mxtrain::Mutex mutex;
int value MXTRAIN_GUARDED_BY(mutex);
int Read() { return value; }'; then
  echo "thread_safety.sh: the annotations have no effect: an access without its lock is accepted" >&2
  exit 1
fi

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  # spin_lock.h includes base/mutex.h. A header is included by its path below lib/ or, of the program, below the root.
  mapfile -t headers < <(grep -rlE --include='*.h' 'Mutex|SpinLock' lib/mxtrain app | sed 's|^lib/||')
  mapfile -t files < <(grep -rlE --include='*.cc' 'Mutex|SpinLock' lib/mxtrain app
    grep -rlF --include='*.cc' "${headers[@]/#/-e#include \"}" lib/mxtrain app)
  mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)
fi
if ! clang++ "${flags[@]}" -x c++ -include cudnn.h /dev/null 2>/dev/null; then
  echo "thread_safety.sh: lib/mxtrain/device/cuda is skipped: CUDA's and cuDNN's headers not found"
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^lib/mxtrain/device/cuda/')
fi
if ! clang++ "${flags[@]}" -x c++ -include mpi.h /dev/null 2>/dev/null; then
  echo "thread_safety.sh: lib/mxtrain/device/mpi is skipped: Open MPI's headers not found"
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^lib/mxtrain/device/mpi/')
fi
echo "thread_safety.sh: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang++ "${flags[@]}" || exit 1
