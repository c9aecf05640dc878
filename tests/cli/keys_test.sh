#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Values of configuration keys: what is out of range, does not fit the net or the data, or is misspelled is refused at its place.
. "$(dirname "$0")/common.sh"

write_points

# refuses TEXT ARGUMENT...: check and train --dry-run exit with 3 and say this.
refuses() {
  local text=$1
  shift
  expect 3 check points.yaml "$@"
  says "$text"
  expect 3 train points.yaml --dry-run "$@"
  says "$text"
}

# --- numbers are finite, and within the ranges of their formulas
for value in inf .inf -.inf 1e38 1e300; do
  refuses "command line:1:20: error: optimizer sgd: lr = '" train.optimizer.lr=$value
  refuses "command line:1:30: error: optimizer sgd: weight_decay = '" train.optimizer.weight_decay=$value
done
refuses "error: optimizer adam: beta1 = '1': 1 is out of range (>= 0, < 1)" 'train.optimizer={name: adam, beta1: 1}'
refuses "error: optimizer adam: epsilon = '0': 0 is out of range (> 0)" 'train.optimizer={name: adam, epsilon: 0}'
refuses "error: train.kvstore.timeout = 0s is out of range" train.kvstore.timeout=0s
refuses "error: optimizer sgd: momentum = '1': 1 is out of range (>= 0, < 1)" train.optimizer.momentum=1
refuses "error: schedule multistep: milestones = '(-5,)': (-5,) is out of range (0 .. 1e+09)" 'train.lr_schedule={multistep: {milestones: [-5]}}'
refuses "command line:1:18: error: train.clip.value: expected a finite number, got '.inf'" train.clip.value=.inf
refuses "error: train.lr_mult: expected a number from 0 to 1000000, got 'inf'" 'train.lr_mult={"*": inf}'
expect 0 train points.yaml --dry-run train.optimizer.lr=1e30
clipped() { echo "net.layers=[{clip: {a_min: $1, a_max: .inf}}, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]"; }
refuses "clip.a_min: expected a number, got 'low'" "$(clipped low)"
expect 0 train points.yaml --dry-run "$(clipped 0)"

# --- integers name their key's range
refuses "error: train.epochs: expected an integer from 0 to 9000000000000000000, got '99999999999999999999'" train.epochs=99999999999999999999
refuses "error: data.workers: expected an integer from 0 to " data.workers=-99999999999
refuses "or auto, got '99999999999999999999'" data.batch_size=99999999999999999999

# --- seeds
expect 2 train points.yaml --dry-run --seed -1
says "9000000000000000000"
refuses "command line:1:6: error: seed: expected an integer from 0 to 9000000000000000000, got '-1'" seed=-1
refuses "error: seed: expected an integer from 0 to 9000000000000000000, got '99999999999999999999'" seed=99999999999999999999
expect 0 train points.yaml --dry-run --seed 9000000000000000000
says "seed 9000000000000000000"

# --- sizes with units
expect 0 train points.yaml --out cached train.epochs=1 data.cache=ram data.cache_bytes=5MiB
holds "5MiB is another number of bytes" grep -q "cache_bytes: 5242880$" cached/config.yaml
refuses "command line:1:18: error: data.cache_bytes: expected a size such as 2GiB, 512MiB or 1000000, got 'much'" data.cache_bytes=much

# --- what does not fit the net or the data, at its key
refuses "command line:1:17: error: a metric names output 'nope', which the net does not have" 'train.metrics=[{accuracy: {output: nope}}]'
refuses "command line:1:26: error: metric mse: labels [4] and output [4, 2] hold different numbers of elements" 'train.metrics=[accuracy, mse]'
refuses "command line:1:17: error: metric accuracy needs label 'nope', which the data do not provide" 'train.metrics=[{accuracy: {label: nope}}]'
refuses "command line:1:27: error: metric accuracy of output 'softmax' appears twice" 'train.metrics=[accuracy, {accuracy: {output: softmax}}]'
refuses "command line:1:23: error: a batch of 4 cannot be divided among 3 workers" train.kvstore.workers=3
refuses "command line:1:22: error: csv: delimiter = 'xx': expected one character, tab, blanks or auto" data.train.delimiter=xx
refuses "command line:1:34: error: csv: $work/points.csv has no column 'q'; it has 4 columns" 'data.train.columns={data: [a, b, q], softmax_label: y}'
cat >value.yaml <<'END'
net: {input: [2], layers: [{FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: value}}]}
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {data: [a, b], value_label: c}}
train: {epochs: 1, metrics: [rmse]}
END
expect 0 train value.yaml --dry-run
expect 3 train value.yaml --dry-run 'data.train.label_delim=;'
says "command line:1:24: error: label_delim makes the label 'value_label' a set of classes, but the loss 'value' takes numbers"
expect 3 train value.yaml --dry-run train.mixup=0.2
says "command line:1:13: error: train.mixup: labels that are distributions need a net with one loss, SoftmaxOutput"

# --- a model that is not trained must be whole
expect 0 train points.yaml --out whole train.epochs=1
expect 0 train points.yaml --out copy train.epochs=0 train.weights=whole
cat >wider.yaml <<'END'
include: points.yaml
net: {layers: [{FullyConnected: {num_hidden: 2}}, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]}
train: {weights: {file: whole}, epochs: 0}
END
for command in "check wider.yaml" "train wider.yaml --out wider" "train wider.yaml --dry-run"; do
  # shellcheck disable=SC2086 # several words
  expect 3 $command
  says "wider.yaml:3:41: error: train.epochs = 0 saves the model of train.weights unchanged, but not all of the net is in it: "
  says "2 are re-initialized, not in the file: fullyconnected1_bias, fullyconnected1_weight"
done
holds "a refused run has a folder" test ! -e wider
expect 0 train wider.yaml --out wider train.epochs=1

# --- names that look like numbers are the same in config.yaml of a run, which continues
cat >names.yaml <<'END'
net:
  input: [3]
  layers:
    - FullyConnected: {name: 010, num_hidden: 2}
    - Activation: {name: 1e5, act_type: tanh, inputs: 010}
    - FullyConnected: {name: 0x10, num_hidden: 2}
    - SoftmaxOutput: {name: 007}
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {data: [a, b, c], 007_label: y}}
train: {epochs: 1, lr_mult: {010_weight: 0.5}, metrics: [{name: accuracy, output: 007}]}
END
expect 0 train names.yaml --out names
expect 0 train names train.epochs=2 --extend
expect 0 plan names/config.yaml
prints 010
prints 1e5

# --- slips
refuses "help: did you mean 'train.epochs'? (integer" trian.epochs=2
refuses "help: did you mean 'train.optimizer.lr'? (" trian.optimizer.lr=2
refuses "help: did you mean 'train'? (" 'trian={epochs: 2}'
refuses "help: did you mean 'train.epochs'? (integer" train.epoch.foo=1
refuses "help: did you mean 'data.train.shuffle'? (" dta.train.shufle=true
refuses "help: did you mean 'data.train.path'? (" data.trian.path=tab.csv
refuses "help: did you mean 'train.optimizer.lr'? (" train.optimiser.lr=2
refuses "help: did you mean 'train.optimizer.weight_decay'? (" trian.optimizer.weight_decy=2
refuses "help: did you mean 'net.layers.0'? (" nte.layers.0=Flatten
for key in data.train.path net.layers.0.FullyConnected.num_hidden train; do
  refuses "help: write $key=VALUE" $key=
  holds "$key has no default" sh -c '! grep -q "=null" stderr'
done
refuses "help: write train.metrics=VALUE, or train.metrics=null to unset it" train.metrics=
refuses "help: write data.workers=VALUE, or data.workers=null for the default" data.workers=
"$helper" images photos 8
write_photos photos photos 4
expect 3 train photos.yaml --dry-run 'data.train.transforms=[{random_resized_crop: 8}, {normalize: imagnet}]'
says "help: did you mean 'imagenet'?"
expect 3 train photos.yaml --dry-run 'data.train.transforms=[{random_resized_crop: {size: 8, interpolation: bilinaer}}]'
says "help: did you mean 'bilinear'?"

# --- a message says its severity, and a path, once
expect 3 train photos.yaml --dry-run 'data.train.transforms=[{random_resized_crop: 8}, {rotate: 0.1}]' data.batch_size=64
says "warning: command line:1:51: rotate: 0.1 is less than a degree"
says "command line:2:17: error: data.batch_size = 64 exceeds the number of examples, 16"
holds "the warning comes twice" test "$(grep -c 'less than a degree' stderr)" = 1
mkdir folder
expect 8 train points.yaml --dry-run train.weights.file=whole train.weights.map=folder
says "error: cannot read $work/folder: it is a folder"
finish
