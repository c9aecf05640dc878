#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on several machines over ssh. When one is lost, continues from the last checkpoint on those that still answer.
#   mpirun_hosts.sh HOSTS CONFIG RUN [key=value...]
# HOSTS: a file with one machine per line and, after a space, its number of processes (1). RUN: the run folder, which all of them see at the same
# path, as they do CONFIG, its data and the program. MXTRAIN: the program; MPIRUN: mpirun of Open MPI or MPICH; MPIRUN_FLAGS: more flags for it.
# KVSTORE: dist_device_sync for GPUs.
set -uo pipefail
mxtrain=${MXTRAIN:-mxtrain}
mpirun=${MPIRUN:-mpirun}
hosts=${1:?which hosts? see the head of this script}
config=${2:?which configuration? see the head of this script}
run=${3:?which run folder? see the head of this script}
shift 3
read -ra flags <<<"${MPIRUN_FLAGS:-}"
list=$(mktemp)
trap 'rm -f "$list"' EXIT

openmpi=yes
[[ $("$mpirun" --version 2>&1) == *HYDRA* ]] && openmpi=no # MPICH's mpirun
# Open MPI asks the ranks to stop (TERM) after a second and kills them after another; a save may take longer. After a loss it waits as long.
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-10}

answers() { ssh -o BatchMode=yes -o ConnectTimeout=5 "$1" true </dev/null 2>/dev/null; }

# "HOST PROCESSES" of each host that answers.
left() {
  local host n
  while read -r host n _; do
    [[ -z $host || $host == \#* ]] && continue
    if answers "$host"; then echo "$host ${n:-1}"; else echo "$host does not answer" >&2; fi
  done <"$hosts"
}

# At most $1 processes, such that the run's batch can be divided among them.
processes() {
  local n=$1 batch workers
  batch=$(sed -n 's/^  batch_size: //p' "$run/config.yaml" 2>/dev/null)
  workers=$(sed -n '/^  kvstore:/,/^  [a-z]/s/^    workers: //p' "$run/config.yaml" 2>/dev/null)
  if [[ -n $batch && -n $workers ]] && grep -q '^    batch: global$' "$run/config.yaml"; then
    while ((n > 1 && batch % (n * workers) != 0)); do n=$((n - 1)); done
  fi
  echo "$n"
}

# The state that a run would continue from.
newest() { stat -L -c '%i %Y' "$run/checkpoints/last" 2>/dev/null; }

job=
stopped=no
stop() {
  stopped=yes
  [[ -z $job ]] || kill -TERM "$job" 2>/dev/null
}
trap stop TERM INT HUP
trap '[[ -z $job ]] || kill -USR1 "$job" 2>/dev/null' USR1 # save

lost=0
while [[ $stopped = no ]]; do
  now=$(left)
  if [[ -z $now ]]; then
    echo "no host answers; to continue, start this again" >&2
    exit 10
  fi
  n=$(processes "$(awk '{ n += $2 } END { print n }' <<<"$now")")
  if [[ $openmpi = yes ]]; then
    sed 's/ / slots=/' <<<"$now" >"$list"
    where=(--hostfile "$list" --bind-to none)
  else
    sed 's/ /:/' <<<"$now" >"$list"
    where=(-f "$list")
  fi
  before=$(newest)
  echo "$n processes on $(cut -d' ' -f1 <<<"$now" | paste -sd' ')" >&2
  # In a session of its own: Ctrl-C reaches this script alone, which passes it on once.
  setsid "$mpirun" "${where[@]}" "${flags[@]}" -n "$n" "$mxtrain" train "$config" --out "$run" --resume --or-begin --kvstore "${KVSTORE:-dist_sync}" "$@" &
  job=$!
  wait "$job"
  code=$?
  while kill -0 "$job" 2>/dev/null; do # a signal of ours ended the wait
    wait "$job"
    code=$?
  done
  job=
  # After a stop mpirun's code may be anything: Open MPI says 1, MPICH sometimes 0.
  if [[ $stopped = yes ]]; then
    grep -qs '"end": "complete"' "$run/result.json" && exit 0
    exit 143
  fi
  [[ $code -eq 0 ]] && exit 0
  # 10: a rank noticed that another was lost; 137 (Open MPI) or 9 (MPICH, without a result): one was killed. Whatever the code is, a host that is
  # gone is a reason.
  again=no
  case $code in
    10 | 137) again=yes ;;
    9) [[ $openmpi = yes || -e $run/result.json ]] || again=yes ;;
    *) [[ $(left 2>/dev/null) = "$now" ]] || again=yes ;;
  esac
  [[ $again = yes ]] || exit "$code"
  lost=$((lost + 1))
  [[ $(newest) = "$before" ]] || lost=1
  if ((lost == 3)); then
    echo "lost three times without a new checkpoint: giving up" >&2
    exit "$code"
  fi
done
exit 143
