#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Folds of the training set: one by hand, all of them by a sweep; and tables of runs that are damaged, old or on other data.
. "$(dirname "$0")/common.sh"

write_points
"$helper" images train 9
write_photos train train 4

# --- one fold
expect 0 train photos.yaml --out one 'data.val={folds: 3, fold: 1}' --json
expect 0 eval one
prints "on 6 examples"
expect 3 train photos.yaml 'data.val={folds: 30}'
says "18 examples are too few for 30 folds"

# --- all of them: a folder, and a table without classes
expect 0 sweep photos.yaml --folds 3 --out cross
prints " over 3 folds (best epochs: "
holds "a line for each fold" [ "$(wc -l <cross/results.csv)" -eq 4 ]
holds "a mean over folds" grep -q '^accuracy,3,[0-9.]*,' cross/folds.csv
holds "a mean of the loss" grep -q ',loss_mean,loss_std' cross/folds.csv
holds "the loss of each run" grep -q ',last_loss' cross/results.csv
holds "every image is predicted out of its fold" [ "$(tail -n +2 cross/out_of_fold.csv | cut -d, -f1 | sort -u | wc -l)" -eq 18 -a "$(wc -l <cross/out_of_fold.csv)" -eq 19 ]
for fold in 1 2 3; do
  expect 0 eval cross/000$fold --predictions fold$fold.csv
done
holds "every image is validated once" [ "$(tail -qn +2 fold?.csv | cut -d, -f1 | sort -u | wc -l)" -eq 18 -a "$(tail -qn +2 fold?.csv | wc -l)" -eq 18 ]
expect 0 sweep points.yaml --folds 2 'train.optimizer.lr=[0.1,0.01]' --out grid --json
prints '"folds":[{'
holds "predictions for each rate" [ "$(wc -l <grid/out_of_fold-0001.csv)" -eq "$(wc -l <grid/out_of_fold-0003.csv)" ]
holds "a line for each rate" [ "$(wc -l <grid/folds.csv)" -eq 3 ]
# The mean and the standard deviation are those of the table of runs.
holds "means are other than the runs'" awk -F, '
  FNR == 1 { file++; for (i = 1; i <= NF; ++i) column[file, $i] = i; next }
  file == 1 { n[$3]++; x = $(column[1, "last"]); s[$3] += x; q[$3] += x * x; next }
  { m = s[$1] / n[$1]; d = sqrt((q[$1] - n[$1] * m * m) / (n[$1] - 1)); a = $(column[2, "last_mean"]) - m; b = $(column[2, "last_std"]) - d
    if (a * a > 1e-10 || b * b > 1e-6) exit 1 }' grid/results.csv grid/folds.csv
expect 0 sweep points.yaml --folds 2 'train.optimizer.lr=[0.1,0.01]' --out grid  # everything is done
expect 2 sweep points.yaml --folds 3 'train.optimizer.lr=[0.1,0.01]' --out grid
says "grid contains another sweep"
# The source of the configuration's validation data goes with all of its keys; how folds are drawn stays.
expect 0 sweep points.yaml --folds 2 --out drawn data.val.stratified=false
holds "stratified is not kept" grep -q 'stratified: false' drawn/0001/config.yaml
expect 0 sweep points.yaml --folds 2 --out replaced 'data.val={source: csv, path: points.csv, columns: {data: [a, b, c], softmax_label: y}, delimiter: ",", missing: drop}'
holds "the source is not replaced by folds" grep -q 'folds: 2' replaced/0001/config.yaml
expect 2 sweep points.yaml --folds 1
expect 2 sweep points.yaml
says "or --folds N"

# --- runs: a damaged run does not hide the others; an old one is not reported as broken off
mkdir kept
cp -r one kept/damaged && echo '{' >kept/damaged/result.json
cp -r one kept/old && rm kept/old/result.json
cp -r one kept/older && rm kept/older/result.json && head -c 100 one/checkpoints/last >kept/older/checkpoints/last
cp -r one kept/whole
expect 0 runs kept --format csv
says "warning: kept/damaged cannot be read: kept/damaged/result.json is damaged"
prints "old,finished,"
prints "older,unknown,"
prints "whole,finished,"

# --- diff names other data
expect 0 diff cross/0001 cross/0002
prints "training "
prints "12 records, "
expect 0 diff one one
prints "data: no difference"
finish
