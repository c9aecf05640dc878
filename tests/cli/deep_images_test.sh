#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# data.bits: images whose low byte alone tells the classes apart.
. "$(dirname "$0")/common.sh"

# write_deep_image FILE LEAST SEED: a PGM of 8x8 samples from LEAST to LEAST + 60; in 8 bits all are 100.
write_deep_image() {
  awk -v least="$2" -v seed="$3" 'BEGIN {
    srand(seed); print "P2 8 8 65535"
    for (i = 0; i < 64; ++i) print least + int(rand() * 61)
  }' >"$1"
}
mkdir -p deep/train/dim deep/train/bright deep/val/dim deep/val/bright
for i in $(seq 16); do
  write_deep_image deep/train/dim/$i.pgm 25580 "$i"
  write_deep_image deep/train/bright/$i.pgm 25760 "$((i + 50))"
done
for i in $(seq 8); do
  write_deep_image deep/val/dim/$i.pgm 25580 "$((i + 100))"
  write_deep_image deep/val/bright/$i.pgm 25760 "$((i + 150))"
done
cat >deep.yaml <<'END'
name: deep
net:
  input: [1, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 8
  bits: 16
  train: {source: image_folder, path: deep/train, transforms: [{random_crop: 8}, flip, {normalize: auto}], shuffle: true}
  val: {source: image_folder, path: deep/val, transforms: [{center_crop: 8}, {normalize: auto}]}
train: {epochs: 10, optimizer: {name: sgd, lr: 0.1}, metrics: [accuracy]}
END

# --- 16 bits are learned from, 8 are not; the model is read as it was trained, also where no configuration is
expect 0 check deep.yaml --strict
prints "no findings"
expect 0 train deep.yaml --out deep16
expect 0 eval deep16 --json
prints '"accuracy":1.0'
expect 0 eval deep16 deep/val --json
prints '"accuracy":1.0'
expect 0 infer deep16 deep/val --format csv
holds "infer reads other numbers than training" test "$(tail -n +2 stdout | awk -F, '{n = split($1, part, "/"); hits += part[n - 1] == $2} END {print hits}')" -eq 16
expect 0 train deep.yaml data.cache=ram --out cached
holds "the cache changes what is learned" "$helper" compare deep16/checkpoints/best cached/checkpoints/best
expect 0 train deep.yaml data.bits=8 --out deep8
expect 0 eval deep8 --json
prints '"accuracy":0.5'

# --- check tells what is lost, and what is of no use
expect 0 check deep.yaml data.bits=8 --json
says "note: data.train: 32 of 32 images have 16 bits per channel, of which 8 are kept; data.bits: 16 keeps all"
prints '"deep":32'
"$helper" images shallow 4
expect 9 check deep.yaml data.train.path=shallow data.val.path=shallow
says "note: data.train: none of 8 images has more than 8 bits per channel; data.bits: 16 is of no use"

# --- what works on 8 bits is refused, before the first batch
for command in check train; do
  expect 3 $command deep.yaml 'data.train.transforms=[{resize: [8, 8]}, {rotate: 10}]'
  says "the transform rotate works on 8 bits per channel; with bits: 16 crops, resizes, flips and normalize can be used"
done
expect 3 train deep.yaml 'data.train.transforms=[{resize: {size: [8, 8], antialias: true}}]'
says "antialias works on 8 bits per channel"
expect 3 check deep.yaml data.bits=12
says "data.bits = 12: expected 8 or 16"
write_points
expect 3 check points.yaml data.bits=16
says "bits: 16 is for images, but the data are numbers: remove it"

# --- an export says how pixels become numbers, and cannot take 8 bits
expect 0 export deep16 deep.onnx
says "(pixel / 255 or, of 16 bits, 65535 - mean) / std"
expect 3 export deep16 with.onnx --with-preprocessing
says "was trained with data.bits: 16; export without it"
finish
