#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Weights of examples, in tables and in lists of images: an example of weight w counts as w of it.
. "$(dirname "$0")/common.sh"

# metrics FILE: the metrics of a report in JSON, one in a line.
metrics() { grep -o '"metrics":{[^}]*}' "$1" | tr '{,}' '\n' | grep ':[^"]' | grep '[0-9]'; }
# near ONE OTHER: the same metrics, to 1e-6.
near() {
  paste -d' ' "$1" "$2" | awk -F'[: ]' 'NF != 4 || $1 != $3 { exit 1 } { d = $2 - $4; if (d * d > 1e-12) exit 1 } END { exit !NR }'
}

# --- a table: rows with weights 0 to 3, and the same rows repeated
{
  echo x,z,kind,w,size
  for i in $(seq 40); do echo "$((i * 7 % 11)),$((i * 5 % 9)),$([ $((i % 3)) -eq 0 ] && echo cat || echo dog),$((i % 4)),$((i * 3 % 13))"; done
} >weighted.csv
awk -F, 'NR == 1 { print; next } { for (k = 0; k < $4; ++k) print }' weighted.csv >repeated.csv
sed 's/,w,/,v,/' weighted.csv >unweighted.csv
cat >table.yaml <<'END'
net:
  inputs: {data: [2]}
  layers:
    - FullyConnected: {name: hidden, num_hidden: 8}
    - Activation: {name: bent, act_type: tanh}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: kind, smooth_alpha: 0.1}
    - FullyConnected: {name: size_fc, num_hidden: 1, inputs: [bent]}
    - LinearRegressionOutput: {name: size}
data:
  batch_size: 8
  train:
    source: csv
    path: weighted.csv
    columns: {data: [x, z], weight: w, kind_label: kind, size_label: size}
    normalize: auto
    shuffle: true
  val: {source: csv, path: weighted.csv, columns: {data: [x, z], kind_label: kind, size_label: size, weight: w}}
train:
  epochs: 3
  optimizer: {name: sgd, lr: 0.05}
  metrics: [{name: accuracy, output: kind}, {name: cross_entropy, output: kind}, {name: f1, output: kind}, {name: auc, output: kind},
            {name: rmse, output: size}, {name: r2, output: size}]
END
expect 0 check table.yaml
says "weights of the examples to train on: from 0 to 3, mean 1.5; 10 of 40 are 0"
prints "no findings"
expect 0 check table.yaml --json
prints '"weights":{"least":0.0,"mean":1.5,"most":3.0,"zeros":10}'
expect 0 train table.yaml --out table
expect 0 eval table --json
says "examples have weights, from 0 to 3, mean 1.5; 10 of 40 are 0: loss and metrics are weighted; tables and figures count every example once"
prints '"weights":{"mean":1.5,"zeros":10}'
metrics stdout >weighted
tail -1 table/metrics.csv | cut -d, -f1 >epoch
expect 0 eval table repeated.csv --json
holds "a repeated row does not count as one with a weight, in eval" false || true
