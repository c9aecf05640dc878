#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No data is lost when any file operation fails or the program is killed at any point; see fault_campaign.cc.
# MXTRAIN_FAULTS: how many faults are drawn, or `all` (some thousands: a quarter of an hour).
. "$(dirname "$0")/common.sh"
"$helper" images photos 3
cat >net.yaml <<'END'
seed: 3
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 3
  workers: 1
  train: {source: image_folder, path: photos, transforms: [{random_resized_crop: 8}], shuffle: true}
  val: {source: image_folder, path: photos, transforms: [{resize: [8, 8]}]}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.1, momentum: 0.9}, metrics: [accuracy], save: {every: 1epoch, keep: 1}}
END
expect 0 train net.yaml --out base -q --threads 1
holds "something was lost" "$campaign" "$program" "$faults" "${MXTRAIN_FAULTS:-40}"
finish
