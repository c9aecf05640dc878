#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A run that is repeatedly killed (SIGKILL) and resumed ends in the same checkpoint, byte for byte, as an undisturbed one; so do runs
# with other numbers of data workers and with the naive engine.
#   kill_test.sh [KILLS]    default 4
. "$(dirname "$0")/common.sh"
kills=${1:-4}
steps=$((120 * kills + 400))

"$helper" idx digits 400 16
cat >net.yaml <<END
seed: 7
net:
  input: [1, 16, 16]
  layers:
    - Convolution: {num_filter: 4, kernel: 5}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - BatchNorm
    - Flatten
    - FullyConnected: {num_hidden: 16}
    - Activation: {act_type: relu}
    - Dropout: {p: 0.3}
    - FullyConnected: {num_hidden: 10}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 8
  train: {source: mnist, path: digits, split: test, shuffle: true}
train:
  epochs: 1000
  max_steps: $steps
  optimizer: {name: adam, lr: 0.001}
  metrics: [accuracy]
  save: {every: 20steps}
END

saves() { grep -c '"event":"save"' killed/events.jsonl 2>/dev/null; }

# Waits, five seconds at most, until the run of process PID has saved once more.
await_save() {
  local pid=$1 before i
  before=$(saves)
  for i in $(seq 100); do
    kill -0 "$pid" 2>/dev/null && [ "$(saves)" = "$before" ] || return
    sleep 0.05
  done
}

# killed AFTER DELAY FLAG...: a run whose saves linger DELAY ms, killed AFTER seconds; counts those that were still at work. Saves that hardly
# linger are waited for first, so that a slow machine gets on too.
hits=0
killed() {
  local after=$1 delay=$2
  shift 2
  MXTRAIN_SAVE_DELAY_MS=$delay "$program" train net.yaml --out killed -q --threads 1 "$@" >>killed.out 2>&1 &
  local pid=$!
  [ "$delay" -eq 10 ] && await_save $pid
  sleep "$after"
  kill -9 $pid 2>/dev/null && hits=$((hits + 1))
  wait $pid 2>/dev/null
  [ $? -eq 137 ]
}

expect 0 train net.yaml --out unbroken -q --threads 1
killed 0.5 60000
holds "a checkpoint stood before the first save had ended" test ! -e killed/checkpoints/last
rm -rf killed
killed 0.03 0
[ -d killed ] || mkdir -p killed/checkpoints
for i in $(seq 2 "$kills"); do
  delay=$((i % 2 ? 200 : 10))
  killed "$(awk -v seed=$((RANDOM + i)) 'BEGIN { srand(seed); print 0.05 + 0.5 * rand() }')" $delay --resume
done
# Resuming removes temporary files of killed processes and keeps those of running ones. No process has the first number.
mkdir -p killed/checkpoints
touch killed/checkpoints/last.new.tmp-4194305 killed/checkpoints/last.new.tmp-$$
echo "$hits kills of running processes, $(awk 'END { print NR }' killed.out) lines said, $(saves) saves ended"
holds "fewer than half of the kills met a running process" test $((2 * hits)) -ge "$kills"
expect 0 train net.yaml --out killed --resume -q --threads 1
holds "files of killed processes are left" test "$(ls -d killed/checkpoints/*.tmp-*)" = "killed/checkpoints/last.new.tmp-$$"
holds "the killed run ends in other bytes" "$helper" compare unbroken/checkpoints/last killed/checkpoints/last

for workers in 1 2 4; do
  expect 0 train net.yaml --out "workers$workers" -q "data.workers=$workers" train.max_steps=100
done
expect 0 train net.yaml --out naive -q --engine naive train.max_steps=100
for other in workers2 workers4 naive; do
  holds "$other ends in other bytes" "$helper" compare workers1/checkpoints/last $other/checkpoints/last
done
expect 0 train net.yaml --out other_seed -q train.max_steps=100 seed=8
holds "another seed gives the same bytes: the comparison sees nothing" test "$("$helper" compare workers1/checkpoints/last other_seed/checkpoints/last | wc -l)" -gt 0
expect 0 eval unbroken --json
cp stdout unbroken.json
expect 0 eval killed --json
holds "eval of both runs differs" test "$(sed 's/unbroken/killed/' unbroken.json)" = "$(cat stdout)"
finish
