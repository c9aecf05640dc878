#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts for several machines: a run continues on the hosts that are left, and a Slurm job queues itself again. ssh, srun and scontrol are
# scripts of this test; the hosts they know are this machine.
#   mpirun_hosts_test.sh MPI     openmpi or mpich
. "$(dirname "$0")/common.sh"
mpi=$1
mpirun=$(command -v "mpirun.$mpi" || { [ "$mpi" = openmpi ] && command -v orterun; }) || { echo "there is no mpirun of $mpi"; exit 77; }
[ -f "$(dirname "$program")/../lib/libmxtrain_$mpi.so" ] || { echo "built without $mpi"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=1
export MXTRAIN=$program
export OMPI_MCA_odls_base_sigkill_timeout=2
experiments=$source_dir/scripts/experiments
write_points
sed -i 's/epochs: 2/epochs: 30000/' points.yaml

# A host that is down refuses connections. mpirun notes the hosts that it was given, and starts all processes here.
mkdir bin down
cat >bin/ssh <<END
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do [[ \$1 == -o ]] && shift; shift; done
[[ ! -e $work/down/\$1 ]] || exit 255
exec sh -c "\${*:2}"
END
cat >bin/mpirun <<END
#!/usr/bin/env bash
[[ \${1:-} == --version ]] && exec $mpirun --version
echo "mpirun \$*" >>$work/calls
cat "\$2" >>$work/calls
shift 2
exec $mpirun $([ "$mpi" = openmpi ] && echo --oversubscribe) "\$@" --threads 1
END
chmod +x bin/*
export PATH=$work/bin:$PATH
printf '# comment\nnodea 3\nnodeb\n' >hosts

# times N TEXT FILE: waits until so many lines of a file have the text.
times() {
  for _ in $(seq 300); do
    [ "0$(grep -sc -- "$2" "$3")" -ge "$1" ] && return
    sleep 0.1
  done
  fail "$3 has not $1 lines with $2"
}

# --- a host is lost, then the script is stopped: a batch of 4 can be divided among 4 processes, and among 2 of the 3 that are left
"$experiments/mpirun_hosts.sh" hosts points.yaml run -q train.save.every=50steps >stdout 2>stderr &
script=$!
times 1 '"event":"save"' run/events.jsonl
touch down/nodeb
pkill -KILL -n -f -- "points.yaml --out run --resume"
times 2 '"event":"start"' run/events.jsonl
saves=$(grep -c '"event":"save"' run/events.jsonl)
times $((saves + 1)) '"event":"save"' run/events.jsonl
kill -TERM $script
wait $script
code=$?
last="mpirun_hosts.sh"
checks=$((checks + 1))
[ $code -eq 143 ] || fail "the script is stopped: exit code $code, expected 143"
says "4 processes on nodea nodeb"
says "nodeb does not answer"
says "2 processes on nodea"
if [ "$mpi" = openmpi ]; then list='nodea slots=3\nnodeb slots=1\n'; else list='nodea:3\nnodeb:1\n'; fi
holds "the list of hosts is the MPI's" cmp -s <(grep ^node calls | head -2) <(printf "$list")
holds "the second start is on the host that is left" [ "$(grep ^node calls | tail -n +3)" = "$(printf "$list" | head -1)" ]
holds "the run continues where it was" grep -q '"first_step":[1-9]' <(grep '"event":"start"' run/events.jsonl | tail -1)
holds "the stop is saved" grep -q '"end": "stopped"' run/result.json

# --- ends that are no loss
"$experiments/mpirun_hosts.sh" hosts points.yaml done -q train.epochs=1 >stdout 2>stderr
holds "no host but nodea: 3 processes are refused" [ $? -eq 3 ]
rm down/nodeb
"$experiments/mpirun_hosts.sh" hosts points.yaml done -q train.epochs=1 >stdout 2>stderr
holds "a run that is complete ends the script" [ $? -eq 0 ]
touch down/nodea down/nodeb
"$experiments/mpirun_hosts.sh" hosts points.yaml done -q >stdout 2>stderr
holds "no host is left" [ $? -eq 10 ]
says "no host answers"

# --- Slurm: the batch script queues itself again after a stop and a loss, and only then
cat >bin/srun <<END
#!/usr/bin/env bash
echo "srun \$*" >>$work/calls
exit \$(cat $work/code)
END
cat >bin/scontrol <<END
#!/usr/bin/env bash
echo "scontrol \$*" >>$work/calls
END
chmod +x bin/*
export SLURM_JOB_ID=7 SLURM_CPUS_ON_NODE=8 SLURM_NTASKS_PER_NODE=2
for code in 0 3 10 137 143; do
  rm calls
  echo $code >code
  "$experiments/slurm.sh" points.yaml run train.epochs=9
  ended=$?
  case $code in
    10 | 137 | 143) holds "code $code queues the job again" [ "$(tail -1 calls)" = "scontrol requeue 7" ] ;;
    *) holds "code $code ends the job" [ "$ended $(wc -l <calls)" = "$code 1" ] ;;
  esac
done
holds "srun gets what train needs" grep -qxF "srun --mpi=pmix --cpus-per-task=4 --kill-on-bad-exit=1 $program train points.yaml --out run --resume --or-begin --kvstore dist_sync train.epochs=9" calls
finish
