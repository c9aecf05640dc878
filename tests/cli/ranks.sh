# SPDX-License-Identifier: Apache-2.0
# Sourced after common.sh by tests of several processes, with the MPI as its argument: functions that start them, and net.yaml with its data.
mpi=$1
mpirun=$(command -v "mpirun.$mpi" || { [ "$mpi" = openmpi ] && command -v orterun; }) || { echo "there is no mpirun of $mpi"; exit 77; }
[ -f "$(dirname "$program")/../lib/libmxtrain_$mpi.so" ] || { echo "built without $mpi"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=1
flags=()
[ "$mpi" = openmpi ] && flags=(--oversubscribe --bind-to none)

# launch ARGUMENT...: mpirun, ended after three minutes: a launcher may hang where its processes do not.
launch() { timeout -k 5 180 "$mpirun" "${flags[@]}" "$@" </dev/null; }

# Some containers let no launcher start processes.
launch -n 2 true >/dev/null 2>&1 || { echo "mpirun of $mpi starts no processes here"; exit 77; }

# ranks CODE N ARGUMENT...: as expect, with N processes.
ranks() {
  local wanted=$1 n=$2
  shift 2
  checks=$((checks + 1))
  last="mpirun -n $n mxtrain $*"
  launch -n "$n" "$program" "$@" --threads 1 >stdout 2>stderr
  local code=$?
  [ $code -eq "$wanted" ] || fail "$last: exit code $code, expected $wanted"
}

# newest FOLDER: the newest rank that trains into a folder; mpirun itself, and what it has forked for a rank, are none.
newest() { pgrep -n -f -- "^$program train .*--out $work/$1( |\$)"; }

"$helper" idx digits 403 16
cat >net.yaml <<END
seed: 7
net:
  input: [1, 16, 16]
  layers:
    - Convolution: {num_filter: 4, kernel: 5}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - Flatten
    - FullyConnected: {num_hidden: 16}
    - Activation: {act_type: relu}
    - FullyConnected: {num_hidden: 10}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 16
  train: {source: mnist, path: digits, split: test, shuffle: true}
  val: {source: mnist, path: digits, split: test}
train:
  epochs: 3
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
  metrics: [accuracy, cross_entropy]
END
