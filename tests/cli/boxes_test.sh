#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Objects in images: generated data is learned, evaluated and predicted; the same objects in files of every form, and what is refused.
. "$(dirname "$0")/common.sh"

expect 0 synth shapes --task detection --count 400 --classes 2 --size 64 --val 0.1 --seed 5
prints "360 images in train, 40 in val; classes disc, ring"
holds "the classes are not named" cmp -s shapes/classes.txt <(printf 'disc\nring\n')
cat >boxes.yaml <<'END'
name: boxes
seed: 2
blocks:
  conv:
    params: {width, stride: 1}
    layers:
      - Convolution: {num_filter: "${width}", kernel: 3, pad: 1, stride: "${stride}", no_bias: true}
      - BatchNorm: {fix_gamma: false}
      - Activation: {act_type: relu}
net:
  input: [3, 64, 64]
  layers:
    - conv: {name: c1, width: 16, stride: 2}
    - conv: {name: c2, width: 32, stride: 2}
    - conv: {name: c3, width: 48, stride: 2}
    - conv: {name: c4, width: 48}
    - conv: {name: c5, width: 48}
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
  train:
    source: yolo
    path: shapes/train
    shuffle: true
    transforms: [{random_resized_crop: {size: [64, 64], area: [0.7, 1]}}, flip, {normalize: {mean: 0.5, std: 0.25}}]
  val: {source: yolo, path: shapes/val, transforms: [{resize: [64, 64]}, {normalize: {mean: 0.5, std: 0.25}}]}
train: {epochs: 40, optimizer: {name: adam, lr: 0.006}, lr_schedule: {name: cosine}, metrics: [mean_ap, {name: mean_ap, iou: 0.5}]}
END
expect 0 check boxes.yaml
prints "label 'loss_label' is [4,6]"
expect 0 plan boxes.yaml
prints "PointBoxLoss"
expect 0 train boxes.yaml --out run -q
holds "the first batch is not drawn" test -s run/samples/train_batch.png
# METRIC of the last epoch, in thousandths.
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the boxes are not learned: $(last val_mean_ap_50)" test "$(last val_mean_ap_50)" -gt 600
holds "training batches are measured by a metric that keeps every box" test "$(head -1 run/metrics.csv | grep -c train_mean_ap)" = 0
sed '/^train:/s/, metrics.*/}/' boxes.yaml >plain.yaml
expect 0 train plain.yaml --out plain -q train.epochs=1
holds "the default metric is another" grep -q '^[^ ].*val_mean_ap' plain/metrics.csv
expect 0 verify-resume boxes.yaml --steps 11
expect 0 train boxes.yaml --out cached data.cache=ram -q
holds "a cache changes the run" cmp -s <(cut -d, -f6- run/metrics.csv) <(cut -d, -f6- cached/metrics.csv)

# --- evaluation and prediction
expect 0 eval run --predictions each.csv
prints "objects: mean AP"
prints "by size: small"
prints "boxes with a score of at least 0.3:"
holds "no line for each image" test "$(wc -l <each.csv)" = 41
holds "the header is another" test "$(head -1 each.csv)" = file,objects,right,wrong,missed
for file in classes.csv curves.csv curves.png confusion.csv worst.png; do holds "eval writes no $file" test -s run/eval/$file; done
expect 0 eval run --json
cp stdout own.json
# number KEY: the first number of this key.
number() { grep -o "\"$1\":[0-9.e-]*" own.json | head -1 | cut -d: -f2; }
holds "the metric is not that of the report: $(number mean_ap), $(number ap)" awk -v a="$(number mean_ap)" -v b="$(number ap)" 'BEGIN { exit !(a > 0.1 && a - b < 1e-3 && b - a < 1e-3) }'
expect 0 eval run --format csv
prints "class,ap,ap50,objects,score,precision,recall"
expect 0 eval run --format jsonl
prints '"ap_small"'
expect 0 eval run shapes/train
prints "on 360 examples"
expect 0 infer run shapes/val/images --format csv --threshold 0.2 --output found.csv --annotate drawn
holds "the header is another" test "$(head -1 found.csv)" = file,class,score,left,top,right,bottom
holds "not every image is there" test "$(cut -d, -f1 found.csv | sort -u | wc -l)" = 41
holds "no images are drawn" test "$(ls drawn | wc -l)" = 40
expect 0 infer run shapes/val/images/000000* --format jsonl
prints '"boxes":[{"class":'
expect 0 infer run shapes/val/images --format csv --threshold 1 --output none.csv
holds "images without boxes have no line of their own" test "$(grep -c ',,,,,,$' none.csv)" = 40

# --- as labels, which are then those of the model itself
expect 0 infer run shapes/val/images --format yolo --output again/labels --threshold 0.5
says "boxes of 40 images in again/labels"
cp -r shapes/val/images again/images
expect 0 infer run shapes/val/images --threshold 0.5 --output again.json
for labels in again again.json; do
  expect 0 eval run $labels --json
  holds "$labels are not the model's own boxes" test "$(grep -o '"ap50":[0-9.]*' stdout | head -1)" = '"ap50":1.0'
done
expect 2 infer run shapes/val/images --format yolo --output again/labels
says "must be new or empty"
expect 2 infer run shapes/val/images --format yolo
says "give --output FOLDER"
expect 2 infer run shapes/val/images --format yolo --output other --json
says "--json prints predictions"
first=$(ls shapes/val/images | head -1)
cp "shapes/val/images/$first" "${first%.*}.bmp"
cp "shapes/val/images/$first" .
expect 2 infer run "$first" "${first%.*}.bmp" --format yolo --output other
says "would both be other/${first%.*}.txt"
holds "a folder is left" test ! -e other

# --- as ONNX, with what makes boxes of the maps
expect 0 export run boxes.onnx
says "rows of class, score, left, top, right, bottom"
holds "boxes are not suppressed in ONNX" grep -q NonMaxSuppression boxes.onnx
expect 3 infer boxes.onnx shapes/val/images
says "NonMaxSuppression"

# --- init recognizes the data
expect 0 init shapes --output init.yaml
prints "boxes of 2 classes (yolo)"
expect 0 check init.yaml
prints "label 'boxes_label'"
expect 3 check init.yaml net.input=[3,100,64]
says "net.input: the sides must be multiples of 32 for decoder: boxes"
# --- distributions of distances, and images that are mixed
sed 's/num_filter: 4, kernel: 1/num_filter: 32, kernel: 1/; s/strides: \[8\]/strides: [8], bins: 8/' boxes.yaml >bins.yaml
expect 0 train bins.yaml --out bins -q
holds "distributions are not learned" awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "val_mean_ap_50") c = i } END { exit !($c > 0.5) }' bins/metrics.csv
expect 0 eval bins
expect 0 export bins bins.onnx
expect 0 train boxes.yaml --out mixed -q train.epochs=3 'train.mixup={alpha: 8, off_epochs: 1}' train.mosaic=0.5
scales='train.multi_scale={scale: [0.75, 1.25], multiple: 8, batches: 2, off_epochs: 1}'
expect 0 train boxes.yaml --out scales train.epochs=3 "$scales"
says "sizes of training images: 48, 56, 64, 72, 80; another one every 2 batches"
holds "the first batch of one of several sizes is not drawn" test -s scales/samples/train_batch.png
expect 0 verify-resume boxes.yaml --steps 11 train.epochs=3 "$scales"
expect 0 plan boxes.yaml "$scales"
prints "executors of several sizes share the largest arena:"
prints "  batches of 80x80 pixels: activations"
expect 3 train boxes.yaml --out none train.multi_scale.scale=2
says "train.multi_scale: the least and the most of the sizes, as multiples of the net's input, are wanted"
expect 3 train boxes.yaml --out none 'train.multi_scale={scale: [0.5, 4], multiple: 1}'
says "train.multi_scale: 225 sizes, and at most 32 are possible"
expect 3 train boxes.yaml --out none "$scales" data.cache=ram
says "train.multi_scale: data.cache: ram keeps images of one size"
expect 3 train boxes.yaml --out none "$scales" 'data.train.transforms=[{resize: 64}]'
says "train.multi_scale: for 48x48 instead of 64x64, the transforms make images whose size differs from image to image"
expect 0 train boxes.yaml --out narrow train.max_steps=1 'train.multi_scale.scale=[0.9, 1.1]'
says "train.multi_scale: no other size than the net's, 64, is in the range"
expect 3 train boxes.yaml --out none train.cutmix=1
says "train.cutmix mixes classes, and the labels are boxes"
expect 3 train boxes.yaml --out none 'net.layers.8.PointBoxLoss.bins=1'
says "bins = 1: expected 0, or at least 2 for a distribution"

# --- the same objects as XML, JSON and a table: equal batches
mkdir -p voc/images voc/annotations
cp shapes/train/images/00004* voc/images
echo "file,class,xmin,ymin,xmax,ymax" >table.csv
for image in voc/images/*; do
  name=$(basename "${image%.*}")
  { echo "<annotation>"
    [[ $name = 000040 ]] || printf '<object><name>cat</name><bndbox><xmin>3</xmin><ymin>4.5</ymin><xmax>30</xmax><ymax>%d</ymax></bndbox></object>' "$((${name#0000} - 10))"
    echo "</annotation>"; } >"voc/annotations/$name.xml"
  [[ $name = 000040 ]] && echo "$image,,,,," >>table.csv || echo "$image,cat,3,4.5,30,$((${name#0000} - 10))" >>table.csv
done
awk -F, 'NR > 1 { images = images sprintf("%s{\"id\": %d, \"file_name\": \"%s\"}", NR > 2 ? ", " : "", NR * 10, $1)
                  if ($2 != "") boxes = boxes sprintf("%s{\"id\": %d, \"image_id\": %d, \"category_id\": 17, \"bbox\": [%s, %s, %s, %s]}", boxes ? ", " : "", NR, NR * 10, $3, $4, $5 - $3, $6 - $4) }
         END { printf "{\"images\": [%s], \"annotations\": [%s], \"categories\": [{\"id\": 17, \"name\": \"cat\"}]}", images, boxes }' table.csv >coco.json
for kind in voc:voc box_csv:table.csv coco:coco.json; do
  expect 0 train boxes.yaml --out "of_${kind%%:*}" -q train.epochs=2 data.train.source=${kind%%:*} data.train.path=${kind#*:} data.val.source=${kind%%:*} data.val.path=${kind#*:} data.batch_size=5
done
for other in box_csv coco; do holds "$other is another data set than voc" cmp -s <(cut -d, -f6- of_voc/metrics.csv) <(cut -d, -f6- of_$other/metrics.csv); done

# --- from a detector of other classes: what scores these is new, wherever in the net it is
expect 0 train boxes.yaml --out tuned train.weights.file=run train.epochs=1 data.train.source=box_csv data.train.path=table.csv data.val.source=box_csv data.val.path=table.csv data.batch_size=5
holds "new classes are told as a gap" sh -c '! grep -q "start from random values" stdout stderr'

# --- what is refused and told
sed -e '/^  val:/d' -e 's/source: yolo/source: voc/' -e 's#path: shapes/train#path: voc#' -e 's/batch_size: 16/batch_size: 5/' boxes.yaml >voc.yaml
echo '<annotation><object><name>cat</name><bndbox><xmin>3</xmin><ymin>x</ymin><xmax>30</xmax><ymax>9</ymax></bndbox></object></annotation>' >voc/annotations/000041.xml
expect 4 check voc.yaml
says "voc/annotations/000041.xml: object 1: ymin is 'x', expected a number of pixels"
echo '<annotation><object><name>cat</name><bndbox><xmin>30</xmin><ymin>9</ymin><xmax>3</xmax><ymax>20</ymax></bndbox></object>
<object><name>cat</name><bndbox><xmin>3</xmin><ymin>9</ymin><xmax>3000</xmax><ymax>30</ymax></bndbox></object></annotation>' >voc/annotations/000041.xml
expect 9 check voc.yaml
says "1 box without an area, which is ignored (first: box 1 of "
says "1 box beyond the edges of the image; only what is inside counts"
says "warning: data.train: 1 box beyond"
# Of validation data: what is wrong with boxes, but not which classes are rare.
expect 9 check boxes.yaml data.batch_size=5 data.train.source=box_csv data.train.path=table.csv data.val.source=voc data.val.path=voc
says "warning: data.val: 1 box beyond"
cp -r shapes/val shapes/of_one_class
sed -i '/^0 /d' shapes/of_one_class/labels/*.txt
expect 0 check boxes.yaml data.val.path=shapes/of_one_class
expect 9 check boxes.yaml data.train.path=shapes/of_one_class
says "data.train: no object of class 'disc'"
echo '<annotation><object>' >voc/annotations/000041.xml
expect 4 check voc.yaml
says "voc/annotations/000041.xml:"
says "not XML"
# Of the run's classes, numbered as there.
printf 'ring\ndisc\n' >shapes/classes.txt
sed -i 's/^0 /2 /; s/^1 /0 /; s/^2 /1 /' shapes/val/labels/*
expect 0 eval run shapes/val --json
cp stdout turned.json
holds "classes in another order are other classes" test "$(grep -o '"ap50":[0-9.]*' turned.json | head -1)" = "$(grep -o '"ap50":[0-9.]*' own.json | head -1)"

finish
