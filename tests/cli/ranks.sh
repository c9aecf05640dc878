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

# ranks_end FOLDER WHAT: after one of them was killed, all ranks that train into a folder end within ten seconds. Their launcher, where it hangs
# without them, is no fault of theirs: it is killed.
ranks_end() {
  local i
  checks=$((checks + 1))
  for i in $(seq 100); do newest "$1" >/dev/null || break; sleep 0.1; done
  if newest "$1" >/dev/null; then fail "$2: a rank goes on"; pkill -KILL -f -- "^$program train .*--out $work/$1( |\$)"; fi
  timeout 5 tail --pid=$launcher -f /dev/null || pkill -KILL -f -- "--out $work/$1( |\$)"
  wait $launcher 2>/dev/null
}

# begin_run N FOLDER ARGUMENT...: a run of net.yaml by N processes that the test then disturbs, after its first epoch; sets launcher.
begin_run() {
  local n=$1 folder=$2 i
  shift 2
  launch -n "$n" "$program" train net.yaml --out "$work/$folder" -q "$@" --threads 1 >stdout 2>stderr &
  launcher=$!
  for i in $(seq 200); do grep -qs '"event":"epoch"' "$folder/events.jsonl" && break; sleep 0.1; done
}

# ends CODE WHAT: so does the run that begin_run has started.
ends() {
  wait $launcher
  local code=$?
  checks=$((checks + 1))
  last=$2
  [ $code -eq "$1" ] || fail "$last: exit code $code, expected $1"
}

# stops_and_continues KVSTORE: one process that is asked to stop stops all, with one save; --resume continues, also with another number of
# processes.
stops_and_continues() {
  begin_run 2 stopped --kvstore "$1" train.epochs=2000
  kill -TERM "$(newest stopped)" # one process alone
  ends 143 "a process that gets TERM"
  holds "the stop is saved" test -f stopped/checkpoints/last
  local epochs
  epochs=$(grep -c '"event":"epoch"' stopped/events.jsonl)
  ranks 0 4 train stopped/config.yaml --resume --out "$work/stopped" -q --kvstore "$1" train.epochs=$((epochs + 3))
  holds "4 processes continue the run of 2" test "$(grep -c '"event":"epoch"' stopped/events.jsonl)" = $((epochs + 3))
}

# notices_silence N ARGUMENT...: one process of a run does not answer any more; the others end, and name it.
notices_silence() {
  begin_run "$1" silent train.epochs=20000 "${@:2}"
  local silent rank code
  silent=$(newest silent)
  rank=$(tr '\0' '\n' <"/proc/$silent/environ" | sed -n 's/^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=//p')
  kill -STOP "$silent"
  wait $launcher
  code=$?
  kill -KILL "$silent" 2>/dev/null
  checks=$((checks + 1))
  last="a process that does not answer"
  # hydra gives the code of one of the processes: of the first, or the signal of the other: KILL of hydra, or HUP, which Linux sends to a
  # stopped process that lost its parent.
  [ $code -eq 10 ] || [ "$mpi" = mpich -a \( $code -eq 9 -o $code -eq 1 \) ] || fail "$last: exit code $code, expected 10"
  says "train.kvstore.timeout"
  holds "rank $rank is named, and no other" grep -q ": rank $rank ended or does not answer" stderr
}

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
