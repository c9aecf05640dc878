#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trace of a run shows every kind of work passing through the engine, and that communication and decoding overlap with compute.
. "$(dirname "$0")/common.sh"
"$helper" idx digits 800 28
cat >net.yaml <<'END'
seed: 7
net:
  input: [1, 28, 28]
  layers:
    - Convolution: {name: first, num_filter: 16, kernel: 5}        # keys 0 and 1
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - Convolution: {num_filter: 16, kernel: 5}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - Flatten
    - Dropout: {p: 0.1}
    - FullyConnected: {name: last, num_hidden: 10}                 # keys 4 and 5
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 32
  train: {source: mnist, path: digits, shuffle: true}
train:
  epochs: 2
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
END
# A machine with other work hides the overlap now and then.
for try in 1 2 3 4 5; do
  expect 0 train net.yaml --out run-$try --overwrite -q --threads 1 --profile trace.json
  "$helper" trace trace.json 4 last_backward first_backward >seen.txt && break
done
holds "the trace is not JSON" sh -c "tr -d '\n' <trace.json | '$helper' json"
holds "the trace does not show what it should: $(cat seen.txt)" "$helper" trace trace.json 4 last_backward first_backward
holds "the trace does not count how often temporary space grew" grep -q '"cpu(0) temporary space, times grown"' trace.json
holds "the trace does not count the passes of Dropout" grep -q '"cpu(0) runs of operators that request random numbers"' trace.json
# The check can fail: with the naive engine everything runs one after the other.
expect 0 train net.yaml --out naive -q --threads 1 --engine naive --profile naive.json
checks=$((checks + 1))
"$helper" trace naive.json 4 last_backward first_backward && fail "the check sees no difference between the engines"
finish
