#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A task that is registered from outside: centres of objects, as many as an image has. Every command asks it, with no edit elsewhere. The
# program is the one linked with centres_task.cc.
program_with_task=$1
. "$(dirname "$0")/common.sh"
program=$program_with_task

# draw FOLDER COUNT SEED: gray images of 24x24 with one to three squares of 5x5, and FOLDER.jsonl with their centres from left to right
draw() {
  mkdir -p "$1"
  awk -v folder="$1" -v count="$2" -v seed="$3" 'BEGIN {
    srand(seed)
    for (n = 0; n < count; ++n) {
      split("", white); list = ""; objects = 1 + int(rand() * 3)
      for (o = 0; o < objects; ++o) {
        x = 1 + int(rand() * 3) + 7 * o; y = 1 + int(rand() * 18)
        for (i = 0; i < 5; ++i) for (j = 0; j < 5; ++j) white[y + i, x + j] = 1
        list = list (o ? ", " : "") "[" x + 2.5 ", " y + 2.5 "]"
      }
      file = sprintf("%s/%03d.pgm", folder, n)
      print "P2\n24 24\n255" > file
      for (i = 0; i < 24; ++i) { line = ""; for (j = 0; j < 24; ++j) line = line ((i, j) in white ? "250 " : "20 "); print line > file }
      close(file)
      printf "{\"image\": \"%s\", \"centres\": [%s]}\n", file, list > (folder ".jsonl")
    }
  }'
}
draw train 60 1
draw val 12 2
sed 's/, "centres".*/}/' val.jsonl >new.jsonl
cat >centres.yaml <<'END'
name: centres
task: centres
net:
  input: [1, 20, 20]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: 48}
    - Activation: {act_type: relu}
    - FullyConnected: {name: places, num_hidden: 6}
    - Reshape: {shape: [0, 3, 2]}
    - LinearRegressionOutput: {name: centres}
data:
  batch_size: 6
  train: {source: centres, path: train.jsonl, shuffle: true, transforms: [flip, {random_crop: 20}]}
  val: {source: centres, path: val.jsonl, transforms: [{center_crop: 20}]}
train: {epochs: 6, optimizer: {name: adam, lr: 0.003}}
END

# --- check and keys
expect 0 check centres.yaml
prints "60 training examples, 12 for validation; 60 steps; the net matches the data"
{ cat train.jsonl; echo '{"image": "train/000.pgm", "centres": []}'; } >odd.jsonl
expect 9 check centres.yaml data.train.path=odd.jsonl
says "data.train: 1 image without a centre"
expect 3 check centres.yaml task=centers
says "there is no task 'centers'; did you mean 'centres'?"
expect 0 help centres
prints "most (integer 1 .. 100, default 3: centres of an image, at most)"
# An image with more centres than the bound is a bad example, in `check` and in training.
{ cat train.jsonl; echo '{"image": "train/000.pgm", "centres": [[1, 1], [5, 5], [9, 9], [13, 13]]}'; } >many.jsonl
expect 4 check centres.yaml data.train.path=many.jsonl
says "many.jsonl:61"

# --- training: its metric is the default, labels move with crops and flips, resume is exact
expect 0 train centres.yaml --out run
holds "its metric was not chosen" grep -q "centres_found" run/config.yaml
says "by centres_found = "
holds "the sheet of the first batch is missing" test -s run/samples/train_batch.png
expect 0 verify-resume centres.yaml train.epochs=2

# --- eval and infer: the model remembers its task
expect 0 eval run
prints " centres found, "
expect 0 eval run --json
holds "no centres in the JSON" grep -q '"centres":{"found":' stdout
expect 0 eval run --predictions each.csv
holds "the lines of eval are not the task's" sh -c 'head -1 each.csv | grep -qx "file,centres,found" && test "$(wc -l <each.csv)" = 13'
expect 0 eval run --predictions each.jsonl
holds "the JSON lines of eval are not the task's" grep -q '"centres":' each.jsonl
expect 0 infer run val --format csv
prints "file,centres,places"
expect 0 infer run val --format jsonl
holds "infer gives no centres" sh -c 'head -1 stdout | grep -qE "\"centres\":\[\["'
expect 0 infer run val --annotate marked
holds "annotated images are missing" test -s marked/000.png
expect 2 infer run val --top-k 2
says "this model does not"
expect 2 infer run val --images out
says "--images is for models that predict images"

# --- places are those of the file, not of the crop: a net that always says (10, 10)
same='{name: sgd, lr: 1.0e-9}'
expect 0 train centres.yaml --out crop train.epochs=1 "train.optimizer=$same" \
  'train.initializers={places_bias: {constant: 10}, places_weight: zero}'
expect 0 infer crop val --format jsonl
holds "places are not moved back from the crop" sh -c 'head -1 stdout | grep -qE "\[(12\.0|11\.99[0-9]*|12\.00[0-9]*),"'
expect 0 train centres.yaml --out grown train.epochs=1 "train.optimizer=$same" 'data.val.transforms=[{resize: [48, 48]}, {center_crop: 20}]' \
  'train.initializers={places_bias: {constant: 10}, places_weight: zero}'
expect 0 infer grown val --format jsonl  # (10 + 14) / 2
holds "places are not moved back from the resize" sh -c 'head -1 stdout | grep -qE "\[(12\.0|11\.99[0-9]*|12\.00[0-9]*),"'

# --- without the key it is a regression of six numbers
sed '/^task/d' centres.yaml >plain.yaml
expect 0 train plain.yaml --out plain train.epochs=1
expect 2 infer plain val
says "'centres' gives [3, 2] for an example"
finish
