#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A kind of data source that is registered from outside: every command knows it, with no edit elsewhere. The program is the one linked with
# json_lines_source.cc.
program_with_source=$1
. "$(dirname "$0")/common.sh"
program=$program_with_source

# lines CLASS...: a JSON object for each image of these classes
lines() {
  local class file
  for class in "$@"; do
    for file in images/"$class"/*.png; do printf '{"image": "%s", "kind": "%s"}\n' "$file" "$class"; done
  done
}
"$helper" images images 12
lines dark light >train.jsonl
lines light >light.jsonl  # alone it would be class 0
sed 's/, "kind".*/}/' light.jsonl >new.jsonl
cat >photos.yaml <<'END'
name: photos
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: json_lines, path: train.jsonl, label_key: kind, transforms: [{resize: [8, 8]}]}
  val: {source: json_lines, path: light.jsonl, label_key: kind, transforms: [{resize: [8, 8]}]}
train: {epochs: 20, optimizer: {name: sgd, lr: 0.5}, metrics: [accuracy]}
END

# is_right: the last evaluation, as JSON, has the accuracy 1
is_right() {
  holds "$last: the accuracy is not 1" grep -qE '"metrics":\{"loss":[0-9.e-]+,"accuracy":1.0\}' stdout
}

# --- its keys are those of the schema
expect 9 check photos.yaml  # the same images twice, which is a warning
prints "24 training examples, 12 for validation; 120 steps; the net matches the data"
says "12 validation images are also training images"
expect 3 check photos.yaml data.train.most=9000
says "data.train: most = '9000': 9000 is out of range"
expect 3 check photos.yaml data.train.most=many
says "data.train.most: expected an integer"
expect 3 check photos.yaml data.train.label_kye=kind
says "did you mean 'data.train.label_key'?"
expect 3 check photos.yaml data.train.split=train
says "data.train 'json_lines' has no key 'split'"
expect 3 check photos.yaml data.train.source=json_line
says "did you mean 'json_lines'?"
expect 0 help json_lines
prints "json_lines: images and classes, a JSON object per line"
prints "label_key (string, default label: member with the class)"
expect 0 help data.train.most
prints "(integer 1 .. 5000, default 1000: lines that are read)"
expect 0 check --schema
holds "the JSON schema" sh -c 'grep -q label_key stdout && grep -q json_lines stdout'

# --- training; validation has the class names of the training set
expect 0 train photos.yaml --out run
says "classes: 0 dark, 1 light"
holds "the keys are in the run's configuration" grep -q 'label_key: kind' run/config.yaml
expect 0 eval run --json
is_right
expect 0 eval run light.jsonl --json
is_right
expect 0 eval run light.jsonl --predictions each.csv
holds "all are light" sh -c '[ $(grep -c ",light,light," each.csv) -eq 12 ]'
expect 0 eval run/checkpoints/last images --json  # the best is of light images alone
is_right

# --- predictions need no labels
expect 0 infer run new.jsonl --format csv
holds "each line is predicted light" sh -c '[ $(grep -c "^images/light/.*,light," stdout) -eq 12 ]'
expect 0 infer run/checkpoints/last images/dark --format csv
holds "a folder is one of images" sh -c '[ $(grep -c ",dark," stdout) -eq 12 ]'
expect 0 infer run new.jsonl --copy-to sorted
holds "images are sorted" test -d sorted/light

# --- what it refuses
echo '{"image": "images/light/0.png", "kind": "grey"}' >grey.jsonl
expect 4 eval run grey.jsonl
says "there is no class 'grey'"
expect 8 init train.jsonl
says "data: {train: {source: json_lines, path: "

finish
