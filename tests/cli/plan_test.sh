#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The memory plan for users: optimality, figure, largest batch, and budget.
. "$(dirname "$0")/common.sh"

net="$source_dir/configs/imagenet/resnet18.yaml"
bytes_of() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" stdout | head -1; }

expect 0 plan "$net" data.batch_size=8
prints "1.000, optimal"
expect 0 plan "$net" data.batch_size=8 --json --plot plan.svg --memory 2GiB
prints '"optimality": "meets_bound"'
prints '"memory_bytes": 2147483648'
plain=$(bytes_of full_bytes)
batch=$(sed -n 's/.*"batch_size": \([0-9]*\).*/\1/p' stdout)
for text in "<svg" "activations" "gradients" "workspace" "bytes alive" "MiB" "time: nodes" "</svg>"; do
  holds "plan.svg lacks $text" grep -qF -- "$text" plan.svg
done
# One more example than the largest batch is too many, and that batch is not.
for more in 0 1; do
  expect 0 plan "$net" data.batch_size=$((batch + more)) --json
  holds "a batch of $((batch + more)) beside --memory" test $(($(bytes_of total_bytes) > 2147483648)) -eq $more
done
expect 0 plan "$net" --memory 1MB
prints "not even one example fits into"
expect 2 plan "$net" --memory much
says "--memory: expected a size such as 8GiB or 512MiB, got 'much'"

# Several processes: 2 (N - 1) / N of the gradients in an all-reduce; compressed, a sixteenth to each other process.
expect 0 plan "$net" data.batch_size=8 --ranks 4 --json
gradients=$(bytes_of gradients_bytes)
states=$(bytes_of optimizer_bytes)
holds "4 processes send $(bytes_of sent_bytes) of $gradients bytes each" test "$(bytes_of sent_bytes)" = $((gradients * 3 / 2))
expect 0 plan "$net" data.batch_size=8 --ranks 4 --json train.kvstore.type=dist_sync train.kvstore.wire=bfloat16
holds "half of that in bfloat16" test "$(bytes_of sent_bytes)" = $((gradients * 3 / 4))
expect 0 plan "$net" data.batch_size=8 --ranks 4 --json --kvstore dist_sync train.kvstore.compression=2bit train.kvstore.shard_states=true
holds "compressed gradients and all weights" test "$(bytes_of sent_bytes)" = $((gradients * 3 / 16 + gradients * 3 / 4))
part=$(bytes_of optimizer_bytes)
holds "a process has about a quarter of the states: $part of $states" test $((4 * part)) -ge "$states" -a $((4 * part)) -le $((states * 5 / 4))
expect 0 plan "$net" data.batch_size=8 --ranks 4
prints "between 4 processes: each sends"
expect 0 plan "$net" data.batch_size=8 --ranks 4 --json --kvstore dist_async
holds "dist_async shares the states out: $(bytes_of optimizer_bytes)" test $((4 * $(bytes_of optimizer_bytes))) -le $((states * 5 / 4))
expect 3 plan "$net" --kvstore none
says "train.kvstore.type"

expect 0 plan "$net" data.batch_size=8 train.memory_budget=$((plain / 10 * 6)) --json
holds "the budget is kept" test "$(bytes_of full_bytes)" -le $((plain / 10 * 6))
expect 3 plan "$net" data.batch_size=8 train.memory_budget=64KiB
says "a memory budget of 64 KiB cannot be met: the net needs at least"
least=$(sed -n 's/.*needs at least \([0-9]*\) bytes.*/\1/p' stderr)
expect 0 plan "$net" data.batch_size=8 train.memory_budget="$least" --json
expect 3 plan "$net" data.batch_size=8 train.memory_budget=$((least - 1))
says "the net needs at least $least bytes"
expect 3 plan "$net" train.memory_budget=lots
says "expected a size such as 2GiB, 512MiB or 1000000, or a percentage such as 75%"
expect 3 plan "$net" train.memory_budget=140%
says "expected a percentage above 0% and up to 100%"
expect 0 plan "$net" data.batch_size=8 train.memory_budget=60% --json
holds "a part of the plain plan is kept" test "$(bytes_of full_bytes)" -le $((plain / 10 * 6))
# A budget does not change results: batch norm, dropout and evaluation are in the run.
expect 0 synth shapes --count 48 --seed 5
cat >deep.yaml <<'END'
blocks:
  unit:
    layers:
      - BatchNorm: {name: bn, fix_gamma: false}
      - Activation: {name: relu, act_type: relu}
      - Convolution: {name: conv, num_filter: 8, kernel: 3, pad: 1, no_bias: true}
      - Dropout: {name: drop, p: 0.1}
      - elemwise_add: {name: sum, inputs: [drop, input]}
net:
  input: [3, 16, 16]
  layers:
    - Convolution: {num_filter: 8, kernel: 3, pad: 1}
    - repeat: {count: 8, index: i, layers: [{unit: {name: "u${i}"}}]}
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput
data:
  batch_size: 8
  train: {source: image_folder, path: shapes/train, shuffle: true, transforms: [{resize: 16}, {center_crop: 16}, flip]}
  val: {source: image_folder, path: shapes/val, transforms: [{resize: 16}, {center_crop: 16}]}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.001}, metrics: [accuracy]}
END
expect 0 plan deep.yaml --json
less=$(($(bytes_of full_bytes) / 10 * 6))
expect 0 train deep.yaml --out plain
expect 0 train deep.yaml train.memory_budget=$less --out small
holds "the losses under a budget are others" diff <(cut -d, -f1,2,6- plain/metrics.csv) <(cut -d, -f1,2,6- small/metrics.csv)

# --- forecasts: time, and the room that a checkpoint takes
write_points
expect 0 plan points.yaml --memory 100TiB
prints "the largest batch within 100 TiB: 1048576, the most that batch_size may be ("
expect 0 plan points.yaml --memory 1MiB train.kvstore.workers=3 data.batch_size=3
holds "a batch that three workers cannot divide" sh -c 'test $(($(sed -n "s/^the largest batch within 1 MiB: \([0-9]*\) .*/\1/p" stdout) % 3)) -eq 0'
prints "unplanned, where each array of the net has a buffer of its own (without workspaces,"
holds "the last line is not the memory in total" grep -qE "^training takes [0-9.]+ [KM]?i?B on batches of 3$" <(tail -1 stdout)
expect 0 plan points.yaml --time
prints " ms per step, from "
prints "; 0:00 per epoch of 4 steps"
expect 0 plan points.yaml --json
forecast=$(bytes_of checkpoint_bytes)
expect 0 train points.yaml --out points
actual=$(wc -c <points/checkpoints/last)
holds "a checkpoint of $actual bytes, $forecast were forecast" test $((actual - forecast)) -ge 0 -a $((actual - forecast)) -lt 20000

# --- data.batch_size: auto is a number from then on, also in a resumed run
expect 0 train points.yaml data.batch_size=auto --out chosen
says "batch_size: auto: 16, which takes "
holds "config.yaml does not hold the number" grep -q "batch_size: 16" chosen/config.yaml
expect 0 train points.yaml data.batch_size=auto train.epochs=4 --out chosen --resume
says "batch_size: auto: 16, as in the resumed run"
expect 0 train points.yaml data.batch_size=auto train.kvstore.workers=3 --out divided
holds "a batch that three workers cannot divide" grep -q "batch_size: 12" divided/config.yaml
expect 3 train points.yaml data.batch_size=automatic
says "data.batch_size: expected an integer or auto, got 'automatic'"
expect 0 plan "$net" data.batch_size=auto
says "batch_size: auto: "
# Twice for each of 21 layers: 2 C + 1 numbers of 8 bytes.
expect 0 plan "$source_dir/configs/cifar/resnet20.yaml" train.kvstore.sync_batch_norm=true --json
holds "the sums of synchronised batch norm" test "$(bytes_of per_step):$(bytes_of bytes_per_step)" = 42:25424
expect 0 plan "$source_dir/configs/cifar/resnet20.yaml" train.kvstore.sync_batch_norm=true
prints "batch norm over all workers and processes: 42 sums per step, 24.8 KiB from each process"

finish
