#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torchvision's SSDLite by its name: init, training, evaluation, prediction, tiles, ONNX, other classes, and what is refused.
. "$(dirname "$0")/common.sh"
net=ssdlite320_mobilenet_v3_large

expect 0 nets $net
prints "$net"
prints "3x320x320"
prints "3,440,060"

expect 0 synth shapes --task detection --count 40 --classes 2 --size 64 --val 0.25 --seed 5
expect 0 init shapes --net $net --size 128 --output ssd.yaml
prints "net input 3x128x128"
for line in "  use: $net" "  size: 128" "      - iou_crop" "      - resize: {size: [128, 128], interpolation: bilinear}" "      - normalize: {mean: 0.5, std: 0.5}"; do
  holds "the recipe lacks '$line'" grep -qF "$line" ssd.yaml
done
holds "the recipe has a decoder" sh -c '! grep -q "decoder:\|input:" ssd.yaml'
expect 0 init shapes --net $net --output -
prints "  size: 320"
expect 0 check ssd.yaml
prints "label 'boxes_label' is [4,6]"
expect 0 plan ssd.yaml
prints "AnchorBoxLoss"

expect 0 train ssd.yaml --out run -q train.max_steps=6 data.batch_size=8
holds "the first batch is not drawn" test -s run/samples/train_batch.png
expect 0 eval run --predictions each.csv
prints "detections: mean AP"
holds "no line for each image" test "$(wc -l <each.csv)" = 11
expect 0 infer run shapes/val/images --threshold 0.001 --annotate drawn --output found.csv
holds "the header is another" test "$(head -1 found.csv)" = file,class,score,left,top,right,bottom
holds "no images are drawn" test "$(ls drawn | wc -l)" = 10
# class: disc or ring; boxes within the files, of about 64 x 64 pixels.
holds "boxes are beyond the image, or of no class" awk -F, 'NR > 1 && $2 != "" { n++; bad += $2 != "disc" && $2 != "ring" || $4 < 0 || $6 > 96 || $7 > 96 || $4 > $6 || $5 > $7 } END { exit bad || !n }' found.csv
expect 0 eval run --tile 48 --overlap 16
expect 0 verify-resume ssd.yaml --steps 3 data.batch_size=4
expect 0 export run ssd.onnx
says "rows of class, score, left, top, right, bottom"
holds "boxes are not suppressed in ONNX" grep -q NonMaxSuppression ssd.onnx

# --- other classes: the layers of the scores are new, the others are taken
expect 0 synth more --task detection --count 12 --classes 3 --size 64 --val 0.25
expect 0 train ssd.yaml --out tuned train.weights.file=run train.max_steps=1 data.train.path=more/train data.val.path=more/val data.train.classes=null data.batch_size=4
says "12 are re-initialized"
holds "new classes are told as a gap" sh -c '! grep -q "start from random values" stdout stderr'
expect 0 train ssd.yaml --out wide -q vars.tail_width=160 train.max_steps=1 data.batch_size=4

# --- what is refused
mkdir -p photos/cat photos/dog
for class in cat dog; do cp shapes/val/images/* photos/$class; done
expect 2 init photos --net $net
says "--net $net finds boxes of objects, which "
expect 2 init shapes --net $net --head-only --weights run --output other.yaml
says "--head-only is for images of one class"
expect 3 check ssd.yaml 'data.train.transforms=[iou_crop, {normalize: {mean: 0.5, std: 0.5}}]'
says "end the transforms with a fixed one: resize: [height, width], letterbox"
expect 3 check ssd.yaml 'net.input=[3, 96, 96]'
says "the layers of $net say the size of images"
expect 3 train ssd.yaml data.train.source=image_folder data.train.path=photos data.train.classes=null 'data.val={split: 0.2}'
says "the transform iou_crop looks where the objects of an image are"
finish
