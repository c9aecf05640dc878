#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No data is lost when any file operation fails or the program is killed at any point; see fault_campaign.cc. With classes, boxes and masks.
# MXTRAIN_FAULTS: how many faults are drawn for each of them, or `all` (some thousands: a quarter of an hour each).
. "$(dirname "$0")/common.sh"

# faults_of TASK SIDE SOURCE METRIC LAYERS: a net of SIDE pixels and its run in a folder TASK, whose folder photos holds the images.
faults_of() {
  local task=$1 side=$2 source=$3 metric=$4 layers=$5
  cd "$task" || exit 1
  cat >net.yaml <<END
seed: 3
net:
  input: [3, $side, $side]
  layers:
$layers
data:
  batch_size: 3
  workers: 1
  train: {source: $source, transforms: [{random_resized_crop: $side}], shuffle: true}
  val: {source: $source, transforms: [{resize: [$side, $side]}]}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.1, momentum: 0.9}, metrics: [$metric], save: {every: 1epoch, keep: 1}}
END
  expect 0 train net.yaml --out base -q --threads 1
  holds "$task: something was lost" "$campaign" "$program" "$faults" "${MXTRAIN_FAULTS:-14}"
  cd ..
}

mkdir classes
"$helper" images classes/photos 3
faults_of classes 8 'image_folder, path: photos' accuracy '    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}'

expect 0 synth boxes --task detection --count 6 --classes 2 --size 32 --val 0
mv boxes/train boxes/photos
faults_of boxes 32 'yolo, path: photos' mean_ap '    - Convolution: {name: seen, num_filter: 4, kernel: 3, stride: 4, pad: 1}
    - Convolution: {name: scores, inputs: seen, num_filter: "${classes}", kernel: 3, stride: 2, pad: 1}
    - Convolution: {name: sides, inputs: seen, num_filter: 4, kernel: 3, stride: 2, pad: 1}
    - PointBoxLoss: {name: loss, inputs: [scores, sides], strides: [8]}
    - PointBoxes: {inputs: [scores, sides], strides: [8]}
    - box_nms: {id_index: 0}
    - BlockGrad: {name: objects}'

expect 0 synth masks --task segmentation --count 6 --classes 2 --size 32 --val 0
mv masks/train/images masks/photos
faults_of masks 32 'image_folder, path: photos, label: mask, targets: train/masks, mask_classes: [background, disc]' mean_iou '    - Convolution: {num_filter: "${classes}", kernel: 3, pad: 1}
    - SoftmaxOutput: {name: softmax, multi_output: true}'
finish
