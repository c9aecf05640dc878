#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist_device_sync in two processes with fake GPUs.
#   training_test.sh PROGRAM MPI        MPI: openmpi or mpich; 77: it is not there
program=$1 mpi=$2
mpirun=$(command -v "mpirun.$mpi" || { [ "$mpi" = openmpi ] && command -v orterun; }) || { echo "there is no mpirun of $mpi"; exit 77; }
[ -f "$(dirname "$program")/../lib/libmxtrain_$mpi.so" ] || { echo "built without $mpi"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=1
flags=(-n 2)
[ "$mpi" = openmpi ] && flags+=(--oversubscribe --bind-to none)
launch() { timeout -k 5 300 "$mpirun" "${flags[@]}" "$@" </dev/null 2>&1; }
fail() { echo "FAILED: $*"; exit 1; }
launch true >/dev/null || { echo "mpirun of $mpi starts no processes here"; exit 77; }

launch "$program" --test-case='training:*' || fail "training: exit code $?"
output=$(launch "$program" --test-case='stuck:*')
code=$?
echo "$output"
[ $code -ne 0 ] || fail "a stuck rank: exit code 0"
grep -q 'rank 0 ended: .*rank 1 ended or does not answer.*; aborted: 1' <<<"$output" || fail "the stuck rank is not named"
grep -q 'ERROR: CHECK' <<<"$output" && fail "a check of the stuck run"
output=$(launch "$program" --test-case='shared:*')
code=$?
echo "$output"
[ $code -eq 2 ] || fail "a shared GPU: exit code $code, expected 2"
grep -q 'refused: ranks 0 and 1 have the same GPU, gpu(0) of rank 0:' <<<"$output" || fail "the ranks that share a GPU are not named"
exit 0
