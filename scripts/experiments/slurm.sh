#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on the nodes of a Slurm job, one process per node, and queues itself again until the run is complete: after the job's time limit, before
# which the run saves, and after a lost node.
#   sbatch [--nodes=N] [--time=LIMIT] slurm.sh CONFIG RUN [key=value...]
# RUN: the run folder, on a file system that all nodes share, as CONFIG, its data and the program. MXTRAIN: the program; MPI: what srun's --mpi says
# (pmix for Open MPI, pmi2 for MPICH); KVSTORE: dist_device_sync for GPUs (with sbatch --ntasks-per-node=GPUS --gpus-per-node=GPUS).
#SBATCH --job-name=mxtrain
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -uo pipefail
mxtrain=${MXTRAIN:-mxtrain}
config=${1:?which configuration? see the head of this script}
run=${2:?which run folder? see the head of this script}
shift 2

# srun binds each process to this many CPUs, and mxtrain uses those that it is bound to.
cpus=$((SLURM_CPUS_ON_NODE / ${SLURM_NTASKS_PER_NODE:-1}))
srun --mpi="${MPI:-pmix}" --cpus-per-task=$cpus --kill-on-bad-exit=1 "$mxtrain" train "$config" --out "$run" --resume --or-begin --kvstore "${KVSTORE:-dist_sync}" "$@"
code=$?

# 143: saved before the time limit; 10 and 137: a rank was lost or killed.
case $code in
  10 | 137 | 143) ;;
  *) exit $code ;;
esac
if [[ ${SLURM_RESTART_COUNT:-0} -ge 100 ]]; then
  echo "queued 100 times: giving up" >&2
  exit $code
fi
scontrol requeue "$SLURM_JOB_ID"
