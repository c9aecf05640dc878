#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a batch or a data set does not define: batch norm over one value, mixing one example, metrics of one class; and what is said of it.
. "$(dirname "$0")/common.sh"
write_points
value() { awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == key) k = i } END { print $k }' "$1/metrics.csv"; }

# --- batch norm over one value per channel: of a batch of one, of a worker's part, of a part of a step
normed='net.layers=[{FullyConnected: {num_hidden: 4}}, {BatchNorm: {name: norm}}, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]'
for command in check "train --out never"; do
  expect 3 $command points.yaml "$normed" data.batch_size=1
  says "BatchNorm 'norm' ("
  says ") of [1, 4]: batch normalization over one value per channel gives beta for every input"
  says "give a batch two examples or more, or set use_global_stats: true"
  expect 3 $command points.yaml "$normed" train.kvstore.workers=4
  says "give each worker's part of a batch two examples or more, or set train.kvstore.sync_batch_norm: true"
  expect 3 $command points.yaml "$normed" data.batch_size=1 train.grad_accum=4
  says "give each of the batches that grad_accum sums two examples"
done
holds "a run that is refused leaves no folder" [ ! -e never ]
expect 0 train points.yaml --out two "$normed" data.batch_size=2
expect 0 train points.yaml --out parts "$normed" train.kvstore.workers=2
expect 0 train points.yaml --out synced "$normed" train.kvstore.workers=4 train.kvstore.sync_batch_norm=true
expect 0 train points.yaml --out fixed "${normed/name: norm/name: norm, use_global_stats: true}" data.batch_size=1

# --- mixup and cutmix of one example
"$helper" images all 8
write_photos all all 1
expect 0 train photos.yaml --out alone train.mixup.alpha=0.4
says "train.mixup mixes the examples of a batch, and a batch has one, so nothing is mixed"
expect 0 train photos.yaml --out alone2 train.cutmix.alpha=1
says "train.cutmix mixes the examples of a batch, and a batch has one, so nothing is mixed"
expect 0 train photos.yaml --out pair train.mixup.alpha=0.4 data.batch_size=2
holds "two are mixed" sh -c '! grep -q "nothing is mixed" stderr'

# --- the auc of one class is nan, and no epoch is the best by it
mkdir -p one/light
cp all/light/*.png one/light
write_photos all one 4
expect 0 train photos.yaml --out auc 'train.metrics=[auc, accuracy]' train.epochs=2 train.save.every=1epoch
holds "the auc of one class is $(value auc val_auc)" [ "$(value auc val_auc)" = nan ]
says "auc is undefined for the validation data"
holds "it is said once" [ "$(grep -c "^warning: auc is undefined" stderr)" -eq 1 ]
holds "no epoch is best" [ "$(value auc best)" = 0 ]
holds "no file of a best epoch" sh -c '! ls auc/checkpoints | grep -q best'
expect 0 eval auc
prints "nan"
expect 0 eval auc --json
prints '"auc":null'
expect 0 train photos.yaml --out by_accuracy 'train.metrics=[auc, accuracy]' train.best.metric=accuracy
holds "an epoch is best by another metric" [ "$(value by_accuracy best)" = 1 ]
expect 0 train photos.yaml --out both 'train.metrics=[auc, accuracy]' data.val.path=all
holds "the auc of two classes is a number" [ "$(value both val_auc)" != nan ]

# --- validation whose loss is not finite, in training whose loss is
{ echo a,b,c,y; echo 1e38,-1e38,1e38,0; echo -1e38,1e38,-1e38,1; } >huge.csv
of_huge="data.val={source: csv, path: huge.csv, columns: {data: [a, b, c], softmax_label: y}}"
expect 7 train points.yaml --out vast "$of_huge" "train.initializer={uniform: 30}"
says "the loss of the validation data is not finite: such an epoch is never the best"
says "after the last epoch the loss of the validation data is not finite"
holds "the loss of validation is $(value vast val_loss)" sh -c 'case $1 in *nan | *inf) ;; *) exit 1 ;; esac' - "$(value vast val_loss)"
holds "the loss of training is a number" sh -c 'case $1 in *nan | *inf) exit 1 ;; esac' - "$(value vast train_loss)"
holds "no file of a best epoch" sh -c '! ls vast/checkpoints | grep -q best'
expect 0 train points.yaml --out of_one_scale "$of_huge" data.val.path=points.csv "train.initializer={uniform: 30}"

# --- a diverged batch has as many examples as it names
write_deep
expect 7 train deep.yaml --out hot train.optimizer.lr=1e30
says "(batch of 4 examples: "
finish
