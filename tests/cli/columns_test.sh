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
sed 's/lft/left/; s/\[c, d\]/[c, d, b]/' wrong.yaml >shape.yaml
expect 3 train shape.yaml
says "the data has shape [3] for input 'right', but the net declares [2]"
sed 's/lft: \[a, b\]/left: [a, x]/' wrong.yaml >column.yaml
expect 3 train column.yaml
says "has no column 'x'; it has 5 columns, named a, b, c, d, y"
says "column.yaml:9:59: error: csv: "
finish
