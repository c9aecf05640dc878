#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --cpu-workers 2 the branches of a net overlap in the trace, and the run ends in the bytes of one worker with the same team.
. "$(dirname "$0")/common.sh"
"$helper" idx digits 400 28
cat >net.yaml <<'END'
seed: 7
net:
  input: [1, 28, 28]
  layers:
    - Convolution: {name: stem, num_filter: 8, kernel: 3}
    - Convolution: {name: left1, num_filter: 32, kernel: 3}
    - Convolution: {name: left2, num_filter: 8, kernel: 3}
    - Convolution: {name: right1, inputs: stem, num_filter: 32, kernel: 3}
    - Convolution: {name: right2, num_filter: 8, kernel: 3}
    - Concat: {inputs: [left2, right2]}
    - Flatten
    - FullyConnected: {num_hidden: 10}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 32
  train: {source: mnist, path: digits, shuffle: true}
train:
  epochs: 2
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
END
expect 0 train net.yaml --device cpu --out one --threads 1 --profile one.json
says "device cpu(0), 1 thread, seed"
# A machine with other work hides the overlap now and then.
for try in 1 2 3 4 5; do
  expect 0 train net.yaml --device cpu --out two --overwrite --threads 2 --cpu-workers 2 --profile two.json
  says "device cpu(0), 2 workers of 1 thread each, seed"
  "$helper" overlap two.json left1 right1 >/dev/null && "$helper" overlap two.json left2_backward right2_backward >/dev/null && break
done
holds "the workers change the result" "$helper" compare one/checkpoints/last two/checkpoints/last
holds "forward passes of the branches do not overlap" "$helper" overlap two.json left1 right1
holds "backward passes of the branches do not overlap" "$helper" overlap two.json left2_backward right2_backward
checks=$((checks + 1))
"$helper" overlap one.json left1 right1 && fail "the check sees no difference between one worker and two"
holds "env.txt tells not of all threads" grep -qx "threads=2" two/env.txt
holds "env.txt lacks the workers" grep -qx "cpu_workers=2" two/env.txt
expect 0 train net.yaml --device cpu --out two --extend train.epochs=1 --threads 4 --cpu-workers 2
says "the checkpoint was made with 1 thread per worker, this run has 2: results may differ in the last bits"

# The plan that is printed is the one that runs: branches that overlap share no bytes.
arena() { tr -d '\n ' <stdout | grep -o '"full_bytes":[0-9]*' | head -1 | cut -d: -f2; }
expect 0 plan net.yaml --device cpu --json --threads 1
one=$(arena)
expect 0 plan net.yaml --device cpu --json --threads 2 --cpu-workers 2
holds "the plan for two workers is not larger: $(arena) after $one" test "$(arena)" -gt "$one"

# It measures a matrix product on a runtime of its own, with one worker, and crashed at the end.
expect 0 bench net.yaml --device cpu --synthetic --seconds 0.01 --rounds 1 --threads 2 --cpu-workers 2

expect 2 plan net.yaml --device cpu --threads 2 --cpu-workers 3
says "3 CPU workers cannot divide 2 compute threads; use 1 to 2 workers, or more threads"
expect 2 plan net.yaml --device cpu --cpu-workers 0
finish
