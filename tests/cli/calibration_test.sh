#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scores of a classifier: their interval, what chance makes of few, and a temperature that eval, infer and exports use.
. "$(dirname "$0")/common.sh"

# Points of two classes that overlap, and a net that fits them too well.
awk 'BEGIN { srand(5); print "a,b,c,y"; for (i = 0; i < 300; ++i) { y = i % 2; printf "%.3f,%.3f,%.3f,%d\n", y + 2 * rand(), rand(), rand(), y } }' >noisy.csv
write_points
cat >sure.yaml <<'END'
include: points.yaml
name: sure
net:
  layers:
    - FullyConnected: {num_hidden: 64}
    - Activation: {act_type: relu}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 20
  train: {path: noisy.csv, shuffle: true}
  val: {split: 0.4}
train: {epochs: 200, optimizer: {name: adam, lr: 0.01}, metrics: [accuracy, cross_entropy]}
END
expect 0 train sure.yaml --out sure -q
expect 0 eval sure
says "these examples chose the checkpoint \`best\`, which flatters it a little"
holds "no interval" grep -qE '^[0-9]+ of 120 right: accuracy 0\.[0-9]{4}, with 95 % confidence 0\.[0-9]{3} to 0\.[0-9]{3}$' stdout
ece() { awk '/^expected calibration error/ { print $4 }' stdout; }
entropy() { awk '$1 == "cross_entropy" { print $2 }' stdout; }
expect 0 eval sure/checkpoints/last
before_ece=$(ece) before_entropy=$(entropy)
expect 0 infer sure/checkpoints/last noisy.csv --format csv
cut -d, -f2 stdout >classes
cut -d, -f3 stdout >scores
expect 0 eval sure/checkpoints/last --calibrate
says "temperature of 'softmax': "
says "the scores above were too high"
says "sure/checkpoints/last.temperature.json: used from now on by eval, infer and export; delete it to undo"
expect 0 eval sure/checkpoints/last
holds "the cross-entropy has not fallen: $before_entropy, $(entropy)" awk "BEGIN { exit !($(entropy) < $before_entropy - 0.01) }"
holds "the calibration error has not fallen: $before_ece, $(ece)" awk "BEGIN { exit !($(ece) < $before_ece) }"
expect 0 infer sure/checkpoints/last noisy.csv --format csv
cp stdout calibrated
holds "other classes are predicted" cmp -s classes <(cut -d, -f2 stdout)
holds "scores have not changed" bash -c '! cmp -s scores <(cut -d, -f3 stdout)'
expect 0 export sure/checkpoints/last sure@1
expect 0 infer sure@1 noisy.csv --format csv
holds "the export has other scores" cmp -s stdout calibrated
# Fitting again finds nothing to change.
expect 0 eval sure/checkpoints/last --calibrate
cp sure/checkpoints/last.temperature.json second
holds "a second temperature undoes the first" awk "BEGIN { exit !($(grep -oE '"softmax": [0-9.]+' second | cut -d' ' -f2) > 1.05) }"
# A checkpoint of another state has no temperature.
expect 0 train sure.yaml --out sure --extend -q
expect 0 eval sure/checkpoints/last
says "sure/checkpoints/last.temperature.json is of another state of sure/checkpoints/last, and is not used"
echo '{"checkpoint": 1' >sure/checkpoints/last.temperature.json
expect 4 eval sure/checkpoints/last
says "last.temperature.json"
rm sure/checkpoints/last.temperature.json
expect 2 eval sure@1 noisy.csv --calibrate
says "--calibrate is for runs and checkpoints; sure@1 is neither"
sed 's/- FullyConnected: {num_hidden: 2}/- FullyConnected: {num_hidden: 1}/; s/SoftmaxOutput/LinearRegressionOutput/; s/accuracy, cross_entropy/mse/; s/epochs: 200/epochs: 1/' sure.yaml >numbers.yaml
expect 0 train numbers.yaml --out numbers -q
# What eval has written belongs to the run.
expect 0 eval numbers
holds "no figure of predictions" test -s numbers/eval/predictions.png
expect 0 train numbers.yaml --out numbers --overwrite -q
expect 0 eval sure/checkpoints/last --calibrate
expect 0 train sure.yaml --out sure --overwrite -q train.epochs=1
expect 2 eval numbers --calibrate
says "--calibrate fits temperatures of classifiers"
finish
