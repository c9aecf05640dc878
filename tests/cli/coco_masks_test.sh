#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A class for each pixel from files of COCO: the same masks as polygons and as run lengths are learned and evaluated; init, check, and what is refused.
. "$(dirname "$0")/common.sh"

expect 0 synth shapes --task detection --count 132 --classes 2 --size 40 --val 0.1 --seed 5
# coco PART FORM [SCALE]: a file of the objects in a part, as rectangles with whole corners, FORM polygons or counts. SCALE: that of width and height there.
coco() {
  for image in shapes/"$1"/images/*; do
    echo "image $(basename "$image") $("$helper" size "$image")"
    cat "shapes/$1/labels/$(basename "${image%.*}").txt"
  done | awk -v form="$2" -v scale="${3:-1}" '
    $1 == "image" {
      w = $3; h = $4
      images = images sprintf("%s{\"id\": %d, \"file_name\": \"%s\", \"width\": %d, \"height\": %d}", images ? ", " : "", ++n, $2, w * scale, h * scale); next }
    {
      l = int(($2 - $4 / 2) * w); t = int(($3 - $5 / 2) * h); r = l + int($4 * w) + 1; b = t + int($5 * h) + 1
      if (r > w) r = w; if (b > h) b = h
      part = sprintf("[[%d, %d, %d, %d, %d, %d, %d, %d]]", l, t, r, t, r, b, l, b)
      if (form == "counts") {
        part = sprintf("{\"size\": [%d, %d], \"counts\": [%d", h, w, l * h + t)
        for (x = l; x < r; ++x) part = part sprintf(", %d, %d", b - t, x < r - 1 ? h - (b - t) : (w - x) * h - b)
        part = part "]}"
      }
      objects = objects sprintf("%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": [%d, %d, %d, %d], \"segmentation\": %s}", objects ? ",\n" : "", 1000 + ++m, n, 7 * $1 + 3, l, t, r - l, b - t, part) }
    END { printf "{\"images\": [%s],\n\"annotations\": [%s],\n\"categories\": [{\"id\": 3, \"name\": \"disc\"}, {\"id\": 10, \"name\": \"ring\"}]}\n", images, objects }'
}
mkdir -p data/annotations && cp -r shapes/train/images data/train && cp -r shapes/val/images data/val
for part in train val; do coco $part polygons >data/annotations/instances_$part.json; done
coco train counts >data/train.json

cat >masks.yaml <<'END'
name: masks
seed: 2
net:
  input: [3, 32, 32]
  layers:
    - Convolution: {num_filter: 12, kernel: 3, pad: 1, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {name: fine, act_type: relu}
    - Convolution: {num_filter: 24, kernel: 3, pad: 1, stride: 2, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {act_type: relu}
    - Convolution: {num_filter: 24, kernel: 3, pad: 4, dilate: 4, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {act_type: relu}
    - UpSampling: {name: up, scale: 2, sample_type: nearest}
    - Concat: {inputs: [up, fine]}
    - Convolution: {num_filter: "${classes}", kernel: 1}
    - SoftmaxOutput: {name: pixels, multi_output: true, use_ignore: true, normalization: valid}
data:
  batch_size: 12
  train:
    source: coco
    path: data/annotations/instances_train.json
    root: data/train
    label: mask
    shuffle: true
    transforms: [{resize: [32, 32]}, flip, {normalize: {mean: 0.5, std: 0.25}}]
  val:
    source: coco
    path: data/annotations/instances_val.json
    transforms: [{resize: [32, 32]}, {normalize: {mean: 0.5, std: 0.25}}]
train: {epochs: 12, optimizer: {name: adam, lr: 0.01}, metrics: [mean_iou, {name: accuracy, ignore_label: -1}]}
END
expect 0 check masks.yaml
prints "label 'pixels_label' is [32,32]"
expect 0 train masks.yaml --out run -q
# Of the last epoch, in thousandths.
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the masks are not learned: $(last val_mean_iou)" test "$(last val_mean_iou)" -gt 400
expect 0 train masks.yaml --out of_counts -q data.train.path=data/train.json
holds "run lengths make other masks than polygons" cmp -s <(cut -d, -f6- run/metrics.csv) <(cut -d, -f6- of_counts/metrics.csv)
expect 0 train masks.yaml --out cached -q data.cache=ram
holds "a cache changes the run" cmp -s <(cut -d, -f6- run/metrics.csv) <(cut -d, -f6- cached/metrics.csv)
expect 0 eval run
prints "background"
prints "ring"
expect 0 eval run data/annotations/instances_train.json
prints "119 examples"
expect 0 infer run data/val --images predicted
expect 0 train masks.yaml --out other -q train.epochs=1 'data.train.classes=[ring, background, disc]'
expect 0 eval other --format csv
prints "class,iou,dice,boundary_f,precision,recall,pixels"
holds "the classes have another order" grep -q '^ring,' <(sed -n 2p stdout)
# Held out of the same file, and masks in files beside it.
expect 0 train masks.yaml --out held -q train.epochs=1 'data.val={split: 0.2, transforms: [{resize: [32, 32]}]}'
expect 0 eval held

# --- init
expect 0 init data --output boxes.yaml
prints "boxes of 2 classes (coco)"
expect 0 init data --task segmentation --output init.yaml
prints "masks of 3 classes (coco), 119 images to train on, 13 to validate"
for line in 'source: coco' 'label: mask' 'classes: \["background", "disc", "ring"\]' 'path: "data/annotations/instances_val.json"'; do
  holds "init writes no $line" grep -q "$line" init.yaml
done
expect 0 check init.yaml
expect 0 train init.yaml --out init_run -q train.max_steps=2 train.epochs=1
mkdir roboflow && cp data/val/* roboflow && sed 's/, "segmentation".*]]}/}/' data/annotations/instances_val.json >roboflow/_annotations.coco.json
expect 4 init roboflow --task segmentation --output none.yaml
says "none of its annotations has a \"segmentation\""
expect 0 init roboflow --output none.yaml
coco val polygons >roboflow/_annotations.coco.json
expect 0 init roboflow --task segmentation --output flat.yaml
prints "10 images to train on, 3 to validate (a fifth, held out)"
expect 0 check flat.yaml

# --- what check finds
sed 's/"annotations": \[/&{"id": 5, "image_id": 1, "category_id": 3, "segmentation": [[1, 2, 3, 4]]},\n{"id": 6, "image_id": 2, "category_id": 3, "segmentation": [[1, 2, 3, 4, 5, 6, 7]]},/' data/annotations/instances_train.json >data/bad.json
expect 4 check masks.yaml data.train.path=data/bad.json
says "data/bad.json: annotation 5: a polygon has 4 numbers; expected x and y of three corners or more"
says "data/bad.json: annotation 6: a polygon has 7 numbers, which is odd; expected x and y of each corner"
expect 4 train masks.yaml --out no data.train.path=data/bad.json
expect 0 train masks.yaml --out tolerated -q train.epochs=1 data.train.path=data/bad.json data.max_bad=0.1
coco train polygons 2 >data/resized.json
expect 4 check masks.yaml data.train.path=data/resized.json
says "was it resized after it was annotated?"
sed 's/"categories": \[/&{"id": 4, "name": "star"}, /' data/annotations/instances_train.json >data/star.json
expect 9 check masks.yaml data.train.path=data/star.json
says "data.train: no pixel of class 'star' in the masks"
sed 's/"images": \[/&{"id": 999, "file_name": "000001.jpg"}, /' data/annotations/instances_train.json >data/empty.json
expect 4 check masks.yaml data.train.path=data/empty.json data.train.root=data/val
says "has no annotations, so that all pixels are background"

# --- what is refused
expect 3 check masks.yaml 'data.train.mask_classes=[background, disc, ring]'
says "those of coco have the names in classes"
expect 4 train masks.yaml --out no 'data.train.classes=[background, disc]'
says "the category 'ring' is not one of the 2 classes (background, disc)"
expect 3 eval run data/val
says "image_folder has no masks of its own"

finish
