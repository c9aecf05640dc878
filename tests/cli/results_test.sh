#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results on stdout and in files: write errors are reported; names with any bytes, features, reports of several heads.
. "$(dirname "$0")/common.sh"

json() { "$helper" json <"$1"; }

"$helper" images photos 8
cat >photos.yaml <<'END'
net:
  input: [3, 8, 8]
  layers:
    - Flatten: {name: flat}
    - FullyConnected: {name: hidden, num_hidden: 5}
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: image_folder, path: photos, transforms: [{resize: [8, 8]}]}
  val: {split: 0.25, transforms: [{resize: [8, 8]}]}
train: {epochs: 1, metrics: [accuracy]}
END
expect 0 train photos.yaml --out model

# Held-out data uses the sizes of the training set's transforms.
sed "s/split: 0.25.*/split: 0.25}/; s/{resize: \[8, 8\]}/{random_resized_crop: 8}, flip/" photos.yaml >sizes.yaml
expect 0 train sizes.yaml --out sizes
expect 0 eval sizes photos
# --- stdout on a full disk
if [ -e /dev/full ]; then
  for arguments in "devices" "ops" "ops Convolution --json" "--version" "train -h" "plan photos.yaml" "check photos.yaml" "check --schema" \
    "eval model" "eval model --format csv" "infer model photos" "train photos.yaml --json --out full" "init photos --output -"; do
    checks=$((checks + 1))
    "$program" $arguments >/dev/full 2>stderr
    code=$?
    last="mxtrain $arguments"
    [ $code -eq 8 ] || fail "$last >/dev/full: exit code $code, expected 8"
    says "cannot write the results to stdout"
    rm -rf full
  done
  expect 8 infer model photos --output /dev/full
  says "cannot write /dev/full: No space left on device; free some space there"
  expect 8 infer model photos --output nowhere/results.csv
  says "cannot write nowhere/results.csv: No such file or directory"
  expect 8 eval model --predictions /dev/full
  says "cannot write /dev/full"
fi

# --- names that are not UTF-8: as they are in tables and CSV, with U+FFFD in JSON
odd=$(printf 'photos/light/caf\351.png')
cp photos/light/000.png "$odd"
expect 0 infer model "$odd" --format csv
holds "the bytes of a name are not its own in csv" grep -qaF "$odd" stdout
expect 0 infer model "$odd" --format jsonl
holds "jsonl is no JSON" json stdout
prints "$(printf 'caf\357\277\275.png')"
head -c 40 photos/light/001.png >"$odd"
expect 4 eval model photos --json
holds "json is no JSON" json stdout
expect 4 check photos.yaml --json
holds "json is no JSON" json stdout
mkdir "$(printf 'd\351p\364t')"
cp -r photos photos.yaml "$(printf 'd\351p\364t')"
rm "$odd"
cd "$(printf 'd\351p\364t')" || exit 1
rm photos/light/caf*
expect 0 train photos.yaml --out model --json
expect 0 eval model photos --json
cd "$work" || exit 1

# --- features: a row for each image, in the order of the names; NaN for one that cannot be read
expect 0 infer model photos --output-layer hidden --output features.npy
holds "a name for each row" test "$(wc -l <stdout)" -eq 16
holds "magic of .npy" test "$(head -c 6 features.npy | tail -c 5)" = NUMPY
holds "the shape" grep -qaF "'shape': (16, 5,)" features.npy
holds "the size" test "$(wc -c <features.npy)" -eq $((128 + 16 * 5 * 4))
tail -c 20 features.npy >last_row
head -c 30 photos/dark/003.png >photos/dark/003.cut && mv photos/dark/003.cut photos/dark/003.png
expect 4 infer model photos --output-layer hidden --output cut.npy --json
prints '"shape":[16,5]'
holds "a row that is missing moved the others" test "$(tail -c 20 cut.npy | cksum)" = "$(cksum <last_row)"
holds "the unreadable image's row is no NaN" test "$(tail -c +$((128 + 3 * 20 + 1)) cut.npy | head -c 4 | od -An -tx1 | tr -d ' ')" = 0000c07f
expect 0 infer model photos --skip-bad --output-layer flat --output flat.npy
holds "the shape" grep -qaF "'shape': (16, 192,)" flat.npy
expect 2 infer model photos --output-layer hiden --output x.npy
says "the model has no layer 'hiden'; did you mean 'hidden'?"
expect 2 infer model photos --output-layer hidden
says "--output-layer needs --output FILE.npy"
expect 2 infer model photos --output-layer hidden --output x.npy --top-k 2
says "--format, --top-k, --copy-to, --annotate, --images and --probabilities are for predictions"

# --- two heads: metrics of one kind have names of their own, and each head its report
cat >heads.yaml <<'END'
net:
  input: [3]
  layers:
    - FullyConnected: {name: shared, num_hidden: 4}
    - FullyConnected: {num_hidden: 2, inputs: shared}
    - SoftmaxOutput: {name: even}
    - FullyConnected: {num_hidden: 3, inputs: shared}
    - SoftmaxOutput: {name: third}
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {data: [a, b, c], even_label: y, third_label: z}}
train: {epochs: 1, metrics: [{name: accuracy, output: third}, {name: accuracy, output: even}, cross_entropy], best: {metric: even_accuracy}}
END
{ echo a,b,c,y,z; for i in $(seq 16); do echo "$((i % 3)),$((i * 7 % 5)),$((i * 3 % 4)),$((i % 2)),$((i % 3))"; done; } >points.csv
expect 0 train heads.yaml --out heads --json
prints '"metric":"even_accuracy"'
prints '"third_accuracy":'
holds "names of metrics.csv" grep -q "train_third_accuracy,train_even_accuracy,train_cross_entropy" heads/metrics.csv
expect 0 eval heads --json
holds "json is no JSON" json stdout
prints '"heads":{"even":{"classes":[{"name":"0"'
prints '"third":{"classes":'
expect 0 eval heads --format csv
holds "the header of csv" test "$(head -1 stdout)" = "head,class,precision,recall,f1,examples"
holds "a line for each class of each head" test "$(wc -l <stdout)" -eq 6
expect 3 train heads.yaml 'train.metrics=[{name: accuracy, output: even}, {name: accuracy, output: even}]' train.best.metric=loss --out twice
says "metric accuracy of output 'even' appears twice"

# --- the operator reference has a formula for each function
expect 0 ops sigmoid
prints "1 / (1 + e^-x), for every element x"
expect 0 ops broadcast_sub
prints "lhs - rhs, element by element"

# --- untrusted names: no control characters in tables, no formulas in CSV, valid JSON
no_escapes() { ! grep -q "$(printf '\033')" "$1"; }
evil=$'=cmd|\x1b[2J\nlight   1.0000'
"$helper" images evil 8
mv evil/dark "evil/$evil"
mv evil/light/000.png $'evil/light/a\r\x1b[31m.png'
expect 0 train photos.yaml --out named data.train.path=evil
holds "the console obeys a class's name" no_escapes stderr
holds "the log holds escapes" no_escapes named/mxtrain.log
says '0 =cmd|\x1b[2J\nlight   1.0000'
expect 0 infer named evil
holds "a table obeys names" no_escapes stdout
holds "a name begins a row of a table" test "$(wc -l <stdout)" -eq 17
prints 'evil/light/a\r\x1b[31m.png'
expect 0 eval named
holds "a report obeys names" no_escapes stdout
holds "a name begins a row of a report" test "$(grep -c '^light ' stdout)" -eq 3
expect 0 eval named --format csv
prints "\"'=cmd|"
if command -v script >/dev/null; then  # a terminal
  for format in csv jsonl; do
    script -qec "'$program' infer named evil --format $format 2>/dev/null" /dev/null >stdout </dev/null
    holds "--format $format obeys names on a terminal" no_escapes stdout
  done
  expect 0 infer named evil --format csv
  holds "--format csv changes names in a pipe" grep -q "$(printf 'a\r\033')" stdout
fi
expect 0 infer named evil --format jsonl
holds "predictions are no JSON" json stdout
holds "a name begins a line of JSON" test "$(wc -l <stdout)" -eq 16
expect 0 eval named --json
holds "a report is no JSON" json stdout
expect 0 export named many@1
holds "a name begins a line of labels" test "$(wc -l <many-labels.txt)" -eq 2

finish
