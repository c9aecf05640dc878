#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large images in tiles: what a net of single pixels says of tiles is what it says of whole images; objects at seams are found once.
. "$(dirname "$0")/common.sh"

expect 0 synth masks --task segmentation --count 60 --classes 3 --size 64 --val 0.2 --seed 5
# A net that looks at single pixels, for inputs of SIDE: its classes are those of their colours, whatever lies around them.
masks_yaml() {
  cat <<END
name: masks
net:
  input: [3, $1, $1]
  layers:
    - Convolution: {num_filter: 16, kernel: 1}
    - Activation: {act_type: relu}
    - Convolution: {num_filter: "\${classes}", kernel: 1}
    - SoftmaxOutput: {name: pixels, multi_output: true, use_ignore: true, normalization: valid}
data:
  batch_size: 8
  train: {source: image_folder, path: masks/train/images, label: mask, targets: masks/train/masks, mask_classes: [background, disc, ring], shuffle: true}
  val: {source: image_folder, path: masks/val/images, targets: masks/val/masks}
train: {epochs: 1, optimizer: {name: sgd, lr: 0}, initializer: {name: normal, sigma: 1}, metrics: [mean_iou]}
END
}
masks_yaml 32 >tiled.yaml
masks_yaml 48 >larger.yaml
expect 0 train tiled.yaml --out tiled 'data.tiles={size: 32, overlap: 8}'
says "48 images of training: "
says " tiles of 32x32 pixels"
expect 0 train larger.yaml --out larger -q train.weights.file=tiled/checkpoints/best 'data.tiles={size: 48, overlap: 20}'
number() { grep -o "\"$1\": *[0-9.e-]*" stdout | head -1 | sed 's/.*: *//'; }
expect 0 eval larger --json
larger_iou=$(number mean_iou_of_images)
expect 0 eval tiled --json
tiled_iou=$(number mean_iou_of_images)
holds "tiles are measured as $tiled_iou, larger ones as $larger_iou" test "$larger_iou" = "$tiled_iou"
holds "every pixel has one class" test "$(grep -o '"pixels":[0-9]*' stdout | sort -u | wc -l)" -gt 1 -a "$(grep -o '"iou":0.0[,}]' stdout | wc -l)" -lt 2
prints '"images":12'
prints '"examples":12'
expect 0 eval tiled --format csv
expect 0 eval tiled --metric mean_iou
prints "mean_iou"
expect 0 infer larger masks/val/images --images of_larger --output larger.csv
expect 0 infer tiled masks/val/images --images of_tiles --output tiled.csv
holds "masks of tiles differ" diff -rq of_larger of_tiles
holds "the table of tiles differs" cmp -s <(sed 's/of_larger/of_tiles/' larger.csv) tiled.csv
expect 0 infer tiled masks/val/images --tile 20 --overlap 3 --images of_small
holds "masks of small tiles lack" test "$(ls of_small/masks/val/images | wc -l)" = 12
expect 0 verify-resume tiled.yaml --steps 7 'data.tiles=32'

# --- boxes: a net for 64 x 64 pixels, of images of about 160 x 160
expect 0 synth shapes --task detection --count 240 --classes 2 --size 160 --val 0.2 --seed 7
cat >boxes.yaml <<'END'
name: boxes
seed: 2
blocks:
  conv:
    params: {width, stride: 1, dilate: 1}
    layers:
      - Convolution: {num_filter: "${width}", kernel: 3, pad: "${dilate}", dilate: "${dilate}", stride: "${stride}", no_bias: true}
      - BatchNorm: {fix_gamma: false}
      - Activation: {act_type: relu}
net:
  input: [3, 64, 64]
  layers:
    - conv: {name: c1, width: 16, stride: 2}
    - conv: {name: c2, width: 24, stride: 2}
    - conv: {name: c3, width: 32, stride: 2}
    - conv: {name: c4, width: 48, dilate: 2}
    - conv: {name: c5, width: 48, dilate: 2}
    - Variable: {name: prior, init: {name: constant, value: -4}}
    - Convolution: {name: scores, inputs: c5, num_filter: "${classes}", kernel: 1, bias: prior}
    - Convolution: {name: sides, inputs: c5, num_filter: 4, kernel: 1}
    - PointBoxLoss: {name: loss, inputs: [scores, sides], strides: [8], box_weight: 5}
    - PointBoxes: {inputs: [scores, sides], strides: [8]}
    - box_nms: {id_index: 0, overlap_thresh: 0.6, valid_thresh: 0.01}
    - slice: {begin: [None, 0], end: [None, 20]}
    - BlockGrad: {name: objects}
data:
  batch_size: 16
  tiles: {size: 128, overlap: 64}
  train: {source: yolo, path: shapes/train, shuffle: true, transforms: [{resize: [64, 64]}, flip, {normalize: {mean: 0.5, std: 0.25}}]}
  val: {source: yolo, path: shapes/val, transforms: [{resize: [64, 64]}, {normalize: {mean: 0.5, std: 0.25}}]}
train: {epochs: 24, mosaic: {probability: 0.5, off_epochs: 3}, optimizer: {name: adam, lr: 0.006}, lr_schedule: {name: cosine}, metrics: [{name: mean_ap, iou: 0.5}]}
END
expect 0 check boxes.yaml
expect 0 train boxes.yaml --out run -q
holds "the first batch is not drawn" test -s run/samples/train_batch.png
expect 0 eval run --json
cp stdout own.json
ap=$(number ap50)
holds "objects in tiles are not found: mAP $ap" awk -v ap="$ap" 'BEGIN { exit !(ap > 0.4) }'
expect 0 infer run shapes/val/images --output found.csv
found=$(tail -n +2 found.csv | awk -F, '$3 >= 0.3' | wc -l)
labelled=$(cat shapes/val/labels/*.txt | wc -l)
holds "$found boxes for $labelled objects" test "$found" -gt $((labelled / 2)) -a "$found" -lt $((labelled * 5 / 2))
expect 0 verify-resume boxes.yaml --steps 7
expect 0 infer run shapes/val/images --annotate drawn
holds "nothing is drawn" test "$(ls drawn | wc -l)" = 48

# --- damaged images are told once, and not predicted
cp -r shapes/val/images some
for file in some/*; do head -c 900 "$file" >cut && mv cut "$file"; break; done
expect 4 infer run some --output found.csv --overwrite
says "1 of 48 examples could not be read"
expect 0 infer run some --output found.csv --overwrite --skip-bad

# --- what tiles do not go with
expect 2 infer run some --tile 0 --overlap 8
says "give --tile N, too"
expect 0 infer run some --overlap 30 --skip-bad
expect 2 infer run some --tile 64 --overlap 40
says "overlap by 40: expected 0 .. 32"
expect 2 infer run some --tile 7
says "tiles of 7 pixels"
expect 2 infer run some --tile 64 --probabilities scores.npy
says "--tile joins boxes and masks"
expect 0 infer run some --tile 0 --probabilities scores.npy --skip-bad
expect 0 synth photos --count 40 --classes 2 --size 24
cat >photos.yaml <<'END'
net: {input: [3, 24, 24], layers: [Flatten, {FullyConnected: {num_hidden: 2}}, SoftmaxOutput]}
data: {batch_size: 8, train: {source: image_folder, path: photos/train, transforms: [{resize: [24, 24]}]}, val: {source: image_folder, path: photos/val, transforms: [{resize: [24, 24]}]}}
train: {epochs: 1}
END
expect 0 train photos.yaml --out photos_run -q
expect 2 infer photos_run photos/val --tile 16
says "--tile is for models of boxes or masks"
expect 2 eval photos_run --tile 16
expect 3 train photos.yaml --out none data.tiles=16
says "belongs to the image as a whole"
expect 3 train photos.yaml --out none train.mosaic=1
says "mosaic is for boxes, masks and images as labels"
expect 3 train boxes.yaml --out none data.tiles.overlap=65
says "cannot overlap by 65"
expect 0 train boxes.yaml --out small -q data.batch_size=2 train.epochs=1 train.mosaic.off_epochs=0
says "train.mosaic joins parts of 4 examples of a batch, and a batch has 2"
expect 0 train boxes.yaml --out small --overwrite -q train.max_steps=2 train.mosaic.off_epochs=24
says "nothing is joined; lower train.mosaic.off_epochs"
finish
