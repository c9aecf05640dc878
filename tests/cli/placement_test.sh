#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Groups of layers on several devices: the plan shows each device's memory, and training gives the bits of one device.
. "$(dirname "$0")/common.sh"
write_points
cat >groups.yaml <<'END'
include: points.yaml
name: groups
net:
  layers:
    - FullyConnected: {name: first, num_hidden: 8, attrs: {ctx_group: early}}
    - Activation: {act_type: tanh}
    - FullyConnected: {name: second, num_hidden: 2, attrs: {ctx_group: late}}
    - SoftmaxOutput: {name: softmax}
END
expect 0 plan --device cpu groups.yaml
holds "a plan on one device has no table of devices" sh -c "! grep -q '^device ' stdout"
expect 0 plan --device cpu groups.yaml --place 'late=cpu(1)' --kernels --plot plan.svg
prints "device      activations"
holds "the plan does not show cpu(0)" grep -q '^cpu(0) ' stdout
holds "the plan does not show cpu(1)" grep -q '^cpu(1) ' stdout
prints "_CrossDeviceCopy"
holds "the figure does not name cpu(1)" grep -qF "cpu(1)" plan.svg
expect 0 plan --device cpu groups.yaml --place late=cpu:1 --json
prints '"device": "cpu(1)"'

expect 0 train --device cpu groups.yaml -q --threads 1 --out one
expect 0 train --device cpu groups.yaml -q --threads 1 --out two --place 'late=cpu(1)' --profile trace.json
holds "two devices gave other weights than one" "$helper" compare one/checkpoints/last two/checkpoints/last
holds "the trace shows no second device" grep -qF '"cpu(1) compute 0"' trace.json
expect 0 bench --device cpu groups.yaml --synthetic --seconds 0.01 --rounds 1 --place 'late=cpu(1)'

expect 0 eval --device cpu one --json --threads 1
cp stdout wanted
expect 0 eval --device cpu one --json --threads 1 --place 'late=cpu(1)'
holds "eval on two devices gives other results than on one" cmp -s wanted stdout
expect 0 infer --device cpu one points.csv --format csv --threads 1
cp stdout wanted
expect 0 infer --device cpu one points.csv --format csv --threads 1 --place early=cpu:1 --place late=cpu:2
holds "infer on three devices predicts otherwise than on one" cmp -s wanted stdout

# A group that infer removes with the rest of the net needs no device.
expect 0 infer --device cpu one points.csv --output-layer first --output features.npy --place late=cpu:1

for command in 'plan groups.yaml' 'eval one' 'infer one points.csv'; do
  expect 3 $command --place 'later=cpu(1)'
  says "group 'later' is placed on cpu(1), but no layer has this ctx_group; the groups are early, late"
  expect 5 $command --place 'late=cpu(99)'
  says "cpu(99) is not available"
  expect 2 $command --place late
  says "--place late: expected GROUP=DEVICE"
  expect 2 $command --place late=cpux
  says "--place late=cpux: 'cpux' is not a device"
done
expect 3 plan --device cpu groups.yaml --place 'late=cpu(1)' train.memory_budget=1GiB
says "a memory budget is not supported for a net on several devices"
expect 3 train --device cpu groups.yaml --dry-run --place 'late=cpu(1)' train.clip.norm=1
says "clipping by the global norm is not supported for a net on several devices"
expect 3 train --device cpu groups.yaml --dry-run --place 'late=cpu(1)' train.kvstore.workers=2
says "while 2 workers share each batch"
finish
