#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables with named columns: nets with several inputs and several losses train end to end, every loss under its own name.
. "$(dirname "$0")/common.sh"

# less FILE KEY: the last value of a column of metrics.csv is below half of its first.
halves() {
  awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == key) k = i; next } NR == 2 { first = $k } { last = $k }
    END { exit !(k && last < first / 2) }' "$1"
}

expect 0 train "$source_dir/configs/siamese/pairs.yaml" train.epochs=30 --out pairs
for name in same_loss distance_loss loss; do
  holds "the $name of pairs does not fall" halves pairs/metrics.csv "train_$name"
  says " $name "
done
expect 0 eval pairs --json
prints '"same_loss":'
prints '"distance_loss":'
prints '"mse":'

expect 0 train "$source_dir/configs/regression/smooth_l1.yaml" train.epochs=20 --out line
holds "the loss of line does not fall" halves line/metrics.csv train_loss
holds "the mae of line does not fall" halves line/metrics.csv train_mae
expect 0 eval line
prints "mae"
tail -n +2 stdout >measures

# --- predictions have no labels: outputs that depend on one are no predictions
points=$source_dir/configs/regression/points.csv
cut -d, -f1-3 "$points" >unlabelled.csv
expect 0 infer line "$points" --format csv
holds "the head of line" test "$(head -1 stdout)" = row,predicted_y
cp stdout predicted
mae=$(tail -n +2 predicted | paste -d, - <(tail -n +2 "$points") | awk -F, '{ d = $2 - $NF; sum += d < 0 ? -d : d } END { print sum / NR }')
holds "the mae of line's predictions, $mae, is not that of eval" awk -v mae="$mae" '$1 == "mae" { d = $2 - mae; near = d * d < 1e-6 } END { exit !near }' measures
expect 0 infer line unlabelled.csv --format csv
holds "line predicts otherwise without labels" cmp -s predicted stdout
expect 0 export line exported@1
expect 0 infer exported@1 unlabelled.csv --format csv
holds "the exported line predicts otherwise" cmp -s predicted stdout
expect 0 eval exported@1 "$points" --batch 16
holds "the exported line is evaluated otherwise" cmp -s measures <(tail -n +2 stdout)
# A missing parameter is no label.
cp exported-symbol.json damaged-symbol.json
LC_ALL=C sed 's/hidden_bias/hidden_gone/' exported-0001.params >damaged-0001.params
for command in infer eval; do
  expect 3 $command damaged@1 "$points"
  says "damaged-0001.params: the parameter 'hidden_bias' of the net is missing"
done
expect 0 infer line unlabelled.csv --output-layer hidden --output hidden.npy
expect 2 infer line unlabelled.csv --output-layer error --output error.npy
says "'error' depends on the label 'y', and predictions are made without labels"
cat >heads.yaml <<END
net:
  inputs: {x: [3]}
  labels: {y: [1]}
  layers:
    - FullyConnected: {name: prediction, num_hidden: 1}
    - elemwise_sub: {name: error, inputs: [prediction, y]}
    - square
    - MakeLoss: {name: loss}
    - BlockGrad: {name: miss, inputs: error}
    - BlockGrad: {name: fitted, inputs: prediction}
data:
  batch_size: 16
  train: {source: csv, path: $points, columns: {x: [x0, x1, x2], y: y}}
train: {epochs: 1}
END
expect 0 train heads.yaml --out heads
expect 0 infer heads unlabelled.csv --format csv
says "skipped: 'miss' depends on the label 'y'"
holds "more than one value for each row" test "$(head -1 stdout | tr -cd , | wc -c)" -eq 1
sed '/fitted/d' heads.yaml >headless.yaml
expect 0 train headless.yaml --out headless
expect 2 infer headless unlabelled.csv
says "'loss' depends on the label 'y', 'miss' depends on the label 'y', and predictions are made without labels"

cat >wrong.yaml <<'END'
net:
  inputs: {left: [2], right: [2]}
  layers:
    - elemwise_sub: {inputs: [left, right]}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: same}
data:
  batch_size: 4
  train: {source: csv, path: few.csv, columns: {lft: [a, b], right: [c, d], same_label: y}}
END
printf 'a,b,c,d,y\n1,2,3,4,0\n1,2,3,4,1\n1,2,3,4,1\n1,2,3,4,1\n' >few.csv
expect 3 train wrong.yaml
says "wrong.yaml:9:"
says "\`columns\` names no columns for the net's input 'left'; did you mean 'lft'?"
# --- a layer that depends on some of the inputs needs their columns only
cat >towers.yaml <<'END'
net:
  inputs: {left: [2], right: [2]}
  layers:
    - FullyConnected: {name: left_tower, inputs: left, num_hidden: 3}
    - FullyConnected: {name: right_tower, inputs: right, num_hidden: 3}
    - elemwise_sub: {inputs: [left_tower, right_tower]}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: same}
data:
  batch_size: 4
  train: {source: csv, path: few.csv, columns: {left: [a, b], right: [c, d], same_label: y}}
train: {epochs: 1}
END
expect 0 train towers.yaml --out towers
expect 0 export towers towers@1
cut -d, -f1,2 few.csv >left.csv
for model in towers towers@1; do
  expect 0 infer $model few.csv --output-layer left_tower --output left.npy --overwrite
  holds "the shape of the left tower's output" grep -qaF "'shape': (4, 3,)" left.npy
  expect 0 infer $model left.csv --output-layer left_tower --output alone.npy --overwrite
  holds "the left tower depends on the right input" cmp -s left.npy alone.npy
  expect 3 infer $model left.csv --output-layer right_tower --output right.npy
  says "has no column 'c'"
  expect 0 infer $model few.csv --output-layer same --output same.npy --overwrite
  expect 2 infer $model few.csv --output-layer right_tower_weight --output weight.npy
  says "'right_tower_weight' depends on no input"
done
sed 's/lft/left/; s/\[c, d\]/[c, d, b]/' wrong.yaml >shape.yaml
expect 3 train shape.yaml
says "the data has shape [3] for input 'right', but the net declares [2]"
sed 's/lft: \[a, b\]/left: [a, x]/' wrong.yaml >column.yaml
expect 3 train column.yaml
says "has no column 'x'; it has 5 columns, named a, b, c, d, y"
says "column.yaml:9:59: error: csv: "
finish
