#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Examples with any number of classes, and with several values: from lists and tables to predictions.
. "$(dirname "$0")/common.sh"

"$helper" images images 8
write_photos images images 4

# --- any number of classes: a list of names
i=0
for file in images/*/*.png; do
  tags=$(basename "$(dirname "$file")")
  [ $((i++ % 2)) -eq 0 ] && tags="$tags;even"
  echo "$file,$tags"
done >tags.csv
head -1 tags.csv | sed 's/,.*/,/' >>tags.csv  # of no class
cat >tags.yaml <<'END'
name: tags
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - LogisticRegressionOutput: {name: tags}
data:
  batch_size: 4
  train: {source: list, path: tags.csv, label_delim: ";", transforms: [{resize: [8, 8]}], shuffle: true}
  val: {split: 0.3, transforms: [{resize: [8, 8]}]}
train: {epochs: 20, optimizer: {name: sgd, lr: 0.5}, metrics: [multilabel_f1, multilabel_accuracy, auc, {name: multilabel_f1, average: micro}]}
END
expect 3 train tags.yaml
says "appears twice"
sed -i 's/, {name: multilabel_f1, average: micro}//' tags.yaml
expect 0 train tags.yaml --out tags
says "classes: 0 dark, 1 even, 2 light"
holds "f1 is not in the table" grep -q val_multilabel_f1 tags/metrics.csv
expect 0 check tags.yaml
expect 0 eval tags --json
prints '"multilabel_f1":'
expect 0 eval tags tags.csv --metric multilabel_accuracy
prints "multilabel_accuracy"
expect 0 eval tags tags.csv --predictions each.csv
prints "precision"
holds "the head of the predictions" test "$(head -1 each.csv)" = file,true_dark,true_even,true_light,predicted_dark,predicted_even,predicted_light
even=$(awk -F, 'NR > 1 { hit += $3 >= 0.5 && $6 >= 0.5; all += $3 >= 0.5 } END { printf "%.4f", hit / all }' each.csv)
holds "the recall of 'even' is not $even" sh -c "grep '^even ' stdout | awk '{ exit !(\$3 == $even) }'"
expect 0 infer tags images/dark images/light --format csv
prints "file,predicted,score"
holds "dark images are not dark" grep -q 'images/dark/.*,dark' stdout
expect 0 infer tags images/dark --threshold 1
prints "  -"
expect 0 infer tags images/light --format jsonl --threshold 0
holds "no JSON" "$helper" json <stdout
prints '"class":"even"'
expect 0 infer tags images/light images/dark --copy-to sorted --threshold 0
holds "a copy in each class" test -d sorted/dark -a -d sorted/even -a -d sorted/light
# Thresholds of the classes, each with the best F1, kept beside the checkpoint; --threshold is for all instead.
expect 0 eval tags/checkpoints/last tags.csv --json
f1_of() { grep -o '"f1":[0-9.]*' stdout | awk -F: '{ s += $2 } END { print s }'; }
before=$(f1_of)
expect 0 eval tags/checkpoints/last tags.csv --calibrate
holds "thresholds without names of classes" grep -qE "thresholds of 'tags', with the best F1 of each class, which the table has: dark [0-9.e-]+, even [0-9.e-]+, light [0-9.e-]+\$" stderr
grep -A3 'f1$' stdout >table_of_fit
says "tags/checkpoints/last.temperature.json: used from now on"
expect 0 eval tags/checkpoints/last tags.csv --json
after=$(f1_of)
expect 0 eval tags/checkpoints/last tags.csv
holds "the table that --calibrate prints is not the one of the new thresholds" sh -c "grep -A3 'f1\$' stdout | cmp -s - table_of_fit"
holds "the table has no line for a class" grep -q '^light' table_of_fit
holds "F1 was $before, and is $after" awk "BEGIN { exit !($after >= $before && $before > 0) }"
tr -d '\n' <tags/checkpoints/last.temperature.json | sed 's/"thresholds": *{.*/"thresholds": {"tags": [2, 0, 2]}}/' >kept.json
cp kept.json tags/checkpoints/last.temperature.json
expect 0 infer tags/checkpoints/last images/dark --format csv
holds "other classes than the thresholds say" sh -c "! sed 1d stdout | cut -d, -f2 | grep -qvx even"
expect 0 infer tags/checkpoints/last images/dark --threshold 1
prints "  -"
# They go with the model, as an output of labels beside the scores (tests/reference/check_thresholds.py).
if "$program" export tags/checkpoints/last tags.onnx >stdout 2>stderr; then
  says "output: 'labels' [N, classes] is 1 where 'tags_output' is at least the threshold of the class, else 0"
  "$program" infer tags/checkpoints/last images --format csv | cut -d, -f1,2 >of_run.csv
  same() { "$program" infer "$1" images --format csv | cut -d, -f1,2 | cmp -s - "$2"; }
  holds "the file predicts other classes than the run" same tags.onnx of_run.csv
  expect 0 infer tags.onnx images/dark --threshold 1
  prints "  -"
  holds "the thresholds are not in the metadata" grep -aqF 'thresholds' tags.onnx
  # Without thresholds it is of several classes all the same.
  mv tags/checkpoints/last.temperature.json aside.json
  "$program" infer tags/checkpoints/last images --format csv | cut -d, -f1,2 >of_run.csv
  holds "no image has another number of classes than one" grep -qvE ',[a-z]+$' of_run.csv
  expect 0 export tags/checkpoints/last plain.onnx
  holds "without thresholds the file predicts otherwise than the run" same plain.onnx of_run.csv
  mv aside.json tags/checkpoints/last.temperature.json
else
  says "this build of mxtrain has no ONNX"
fi
rm tags/checkpoints/last.temperature.json
expect 2 infer tags images/dark --top-k 2
says "--top-k is for models that predict one class of several"
expect 3 train tags.yaml 'train.metrics=[accuracy]'
says "metric accuracy requires exactly one class per example; label_delim allows any number"
expect 3 train tags.yaml 'net.layers=[Flatten, {FullyConnected: {num_hidden: 3}}, {SoftmaxOutput: {name: tags}}]'
says "label_delim allows any number of classes, but SoftmaxOutput takes exactly one"
sed 's/dark;even/dark,even/' tags.csv >commas.csv
expect 4 train tags.yaml data.train.path=commas.csv
says "commas.csv:2: 1 label, but the lines before have 2"

# --- a table of values: several targets, with images and without
{ echo file,x,y; for file in images/*/*.png; do case $file in *dark*) echo "$file,0,2" ;; *) echo "$file,1,-1" ;; esac; done; } >targets.csv
cat >targets.yaml <<'END'
name: targets
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: 2}
    - LinearRegressionOutput: {name: point}
data:
  batch_size: 4
  train: {source: csv, path: targets.csv, columns: {data: file, point_label: [x, y]}, transforms: [{resize: [8, 8]}], shuffle: true}
  val: {split: 0.25, transforms: [{resize: [8, 8]}]}
train: {epochs: 30, optimizer: {name: sgd, lr: 0.01}, metrics: [rmse, r2]}
END
expect 0 train targets.yaml --out targets
expect 0 eval targets --json
prints '"rmse":'
expect 0 eval targets targets.csv --predictions each.csv --overwrite
holds "not a line for each example" test "$(wc -l <each.csv)" -eq "$(wc -l <targets.csv)"
mae=$(awk -F, 'NR > 1 { d = $5 - $3; sum += d < 0 ? -d : d; ++n } END { printf "%.4f", sum / n }' each.csv)
holds "the mean error of y is not $mae" sh -c "grep '^y ' stdout | awk '{ exit !(\$2 == $mae) }'"
expect 0 infer targets images/dark --format csv
prints "file,predicted_x,predicted_y"
expect 0 infer targets images/dark --format jsonl
prints '"values":['
expect 0 infer targets images/dark
expect 2 infer targets images/dark --copy-to sorted
says "--copy-to sorts by class; this model predicts no classes"
expect 2 infer targets images/dark --threshold 0.5
says "--threshold is for multi-label models"
finish
