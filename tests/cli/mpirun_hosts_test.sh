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
experiments=$source_dir/scripts/experiments
write_points
sed -i 's/epochs: 2/epochs: 30000/' points.yaml

# A host that is down refuses connections. The ranks of both run below this mpirun: two processes that think they are on one machine.
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
printf '# two hosts\nnodea\nnodeb 2\n' >hosts

# Starts the script, waits for a checkpoint, and runs a command.
after_a_save() {
  rm -rf run calls down/*
  "$experiments/mpirun_hosts.sh" hosts points.yaml run -q train.save.every=50steps >stdout 2>stderr &
  script=$!
  wait_for run/checkpoints/last
  "$@"
  wait "$script"
  code=$?
}

lose_host() {
  touch down/nodeb
  pkill -KILL -n -f -- '--out run --resume'
  for _ in $(seq 300); do [ "$(grep -c '^mpirun' calls)" = 2 ] && break; sleep 0.1; done
  step=$(grep -c '"event":"save"' run/events.jsonl)
  for _ in $(seq 300); do [ "$(grep -c '"event":"save"' run/events.jsonl)" -gt "$step" ] && break; sleep 0.1; done
  kill -TERM $script
}
after_a_save lose_host
last="a host that is lost"
says "nodeb does not answer"
says "1 processes on nodea"
holds "it starts twice" [ "$(grep -c '^mpirun' calls)" -eq 2 ]
holds "the second time with one process" grep -q -- '-n 1 ' <(tail -2 calls)
holds "the run continues" [ "$(grep -c '"event":"start"' run/events.jsonl)" -eq 2 ]
holds "TERM to the script ends it, after a save" grep -q '"end": "stopped"' run/result.json
holds "its code is that of a stop" [ "$code" -eq 143 ]
sed -n 2,3p calls >list
if [ "$mpi" = openmpi ]; then
  holds "the list is Open MPI's" cmp -s list <(printf 'nodea slots=1\nnodeb slots=2\n')
else
  holds "the list is MPICH's" cmp -s list <(printf 'nodea:1\nnodeb:2\n')
fi
finish
