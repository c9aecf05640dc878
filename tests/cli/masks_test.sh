#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A class for each pixel: generated data is learned, evaluated and predicted; files of masks, and what is refused.
. "$(dirname "$0")/common.sh"

expect 0 synth shapes --task segmentation --count 220 --classes 3 --size 40 --val 0.1 --seed 5
prints "198 images in train, 22 in val; classes background, disc, ring"
holds "the classes are not named" cmp -s shapes/classes.txt <(printf 'background\ndisc\nring\n')
cat >masks.yaml <<'END'
name: masks
seed: 2
net:
  input: [3, 32, 32]
  layers:
    - Convolution: {name: c1, num_filter: 12, kernel: 3, pad: 1, no_bias: true}
    - BatchNorm: {name: b1, fix_gamma: false}
    - Activation: {name: r1, act_type: relu}
    - Convolution: {num_filter: 24, kernel: 3, pad: 1, stride: 2, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {act_type: relu}
    - Convolution: {num_filter: 24, kernel: 3, pad: 2, dilate: 2, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {act_type: relu}
    - UpSampling: {name: up, scale: 2, sample_type: nearest}
    - Concat: {inputs: [up, r1]}
    - Convolution: {num_filter: 12, kernel: 3, pad: 1}
    - Activation: {act_type: relu}
    - Convolution: {num_filter: "${classes}", kernel: 1}
    - SoftmaxOutput: {name: pixels, multi_output: true, use_ignore: true, normalization: valid}
data:
  batch_size: 16
  train:
    source: image_folder
    path: shapes/train/images
    label: mask
    targets: shapes/train/masks
    mask_classes: [background, disc, ring]
    shuffle: true
    transforms: [{resize: [32, 32]}, {rotate: 20}, flip, {normalize: {mean: 0.5, std: 0.25}}]
  val:
    source: image_folder
    path: shapes/val/images
    targets: shapes/val/masks
    transforms: [{resize: [32, 32]}, {normalize: {mean: 0.5, std: 0.25}}]
train: {epochs: 12, optimizer: {name: adam, lr: 0.01}, metrics: [mean_iou, {name: accuracy, ignore_label: -1}]}
END
expect 0 check masks.yaml
prints "label 'pixels_label' is [32,32]"
expect 0 train masks.yaml --out run -q
holds "the first batch is not drawn" test -s run/samples/train_batch.png
# iou METRIC: the last epoch's, in thousandths.
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the masks are not learned: $(last val_mean_iou)" test "$(last val_mean_iou)" -gt 420
holds "the default metric is another" test "$(sed '/^train:/s/, metrics.*/}/' masks.yaml >plain.yaml && "$program" train plain.yaml --out plain -q train.epochs=1 && head -1 plain/metrics.csv | grep -c val_mean_iou)" = 1
expect 0 verify-resume masks.yaml --steps 11
scales='train.multi_scale={scale: [0.5, 1.5], multiple: 8, batches: 1}'
expect 0 train masks.yaml --out scales -q train.epochs=3 "$scales"
expect 0 verify-resume masks.yaml --steps 7 "$scales"
expect 0 plan masks.yaml "$scales"
prints "  batches of 48x48 pixels: activations"
expect 0 train masks.yaml --out cached data.cache=ram -q
holds "a cache changes the run" cmp -s <(cut -d, -f6- run/metrics.csv) <(cut -d, -f6- cached/metrics.csv)

expect 0 eval run --predictions each.csv
prints "pixels: mean IoU"
prints ", boundary F 0."
prints "background"
holds "no line for each image" test "$(wc -l <each.csv)" = 23
for file in classes.csv confusion.csv worst.png; do holds "eval writes no $file" test -s run/eval/$file; done
expect 0 eval run --format csv
prints "class,iou,dice,boundary_f,precision,recall,pixels"
expect 0 eval run --format jsonl
prints '"mean_iou_of_images"'

# --- init recognizes the layouts
expect 0 init shapes --output init.yaml
prints "masks of 3 classes, 198 images to train on, 22 to validate"
holds "the names of classes.txt are not there" grep -q 'mask_classes: \["background", "disc", "ring"\]' init.yaml
expect 0 check init.yaml
expect 0 train init.yaml --out init_run -q train.max_steps=2 train.epochs=1
mkdir flat && cp -r shapes/train/images flat/Images && cp -r shapes/train/masks flat/labels
expect 0 init flat --output flat.yaml --size 32
prints "158 images to train on, 40 to validate (a fifth, held out)"
holds "the classes have numbers" grep -q 'mask_classes: \["class_0", "class_1", "class_2"\]' flat.yaml
expect 0 check flat.yaml
expect 0 init flat --output net.yaml --net mobilenet_v2
holds "a decoder" grep -q 'decoder: pyramid' net.yaml
expect 0 check net.yaml
for decoder in deeplab unet; do
  expect 0 train net.yaml net.decoder=$decoder --out $decoder -q train.max_steps=2 train.epochs=1
  holds "$decoder adds no layers of its own" grep -q "name: decoder_aspp\|name: decoder2," $decoder/config.yaml
  expect 0 eval $decoder
done
expect 2 init flat --output no.yaml --net mobilenet_v2 --head-only
# A second loss of the same label.
for decoder in pyramid deeplab unet; do
  expect 0 train net.yaml net.decoder=$decoder vars.dice_weight=0.5 --out dice_$decoder -q train.max_steps=2 train.epochs=1
  holds "$decoder has no dice loss" grep -q "^epoch,.*train_dice_loss.*val_mean_iou" dice_$decoder/metrics.csv
done
expect 0 eval dice_pyramid
expect 0 infer dice_pyramid flat/Images --images dice_masks
expect 0 export dice_pyramid dice.onnx
expect 0 init shapes/train --task classification --output -
prints "num_hidden"

# Masks whose names end in something of their own; a list of classes that is too short.
mkdir named && cp -r shapes/train/images named/images && mkdir named/masks
for file in shapes/train/masks/*; do cp "$file" "named/masks/$(basename "$file" .png)_L.png"; done
printf '\xef\xbb\xbfbackground\ndisc\n' >named/classes.txt
rm named/masks/000025_L.png
expect 0 init named --output named.yaml
holds "the suffix" grep -q 'targets_suffix: "_L"' named.yaml
holds "the first name has no byte order mark" grep -q 'mask_classes: \["background", "disc"\]' named.yaml
says "1 of 198 images have no mask (first: "
says "the list of classes has 2 names, from 0 to 1; the masks have also 2, which are written as mask_ignore"
expect 2 init flat --output no.yaml --net vgg11
says "does not say which of its layers a decoder of masks takes"

# --- masks of the size of the files, which are masks to train on
expect 0 infer run shapes/val/images --images predicted --annotate painted --format csv --output list.csv
masks=predicted/shapes/val/images
holds "22 masks" test "$(ls $masks | wc -l)" = 22
holds "22 painted images" test "$(ls painted | wc -l)" = 22
holds "the list names classes and files" grep -q '^[^,]*,background [^,]*,' list.csv
expect 0 train masks.yaml --out again -q train.epochs=1 data.val.targets=$masks
expect 0 eval run masks.yaml data.val.targets=$masks
prints "mean_iou         0.9"
expect 2 infer run shapes/val/images --tta flip
says "differ from view to view"

# --- other images have masks beside them as those of the run have
cp -r shapes/val other && rm other/masks/000003.png
expect 0 eval run shapes/train/images
prints "198 examples"
expect 4 eval run other/images
says "other/masks/000003.jpg does not exist"
mv other/masks elsewhere
expect 2 eval run other/images
says "which images they are compared with is not known"

# --- what is refused
expect 3 train masks.yaml --out no 'data.train.mask_classes=[background, disc, ring, star]' net.layers.13.Convolution.num_filter=3
says "'pixels' has 3 classes, but the data has 4"
expect 4 train masks.yaml --out no 'data.train.mask_classes=[background, disc]'
says "its mask: the mask has 2 at ("
says "which is neither a class nor in mask_ignore"
expect 3 check masks.yaml data.train.targets=null
says "label: mask needs the folder of the masks"
expect 3 train masks.yaml --out no data.train.label=given
says "needs label: image or mask"
expect 3 train masks.yaml --out no train.mixup=0.2
says "train.mixup"
expect 3 check masks.yaml 'data.train.mask_classes=[background, disc, disc]'
says "mask_classes names 'disc' twice"
sed 's/SoftmaxOutput:.*/LogisticRegressionOutput: {name: pixels}/; s/metrics: .*/metrics: [mse]}/' masks.yaml >logistic.yaml
expect 3 check logistic.yaml
says "label: mask has a class for each pixel, which 'pixels' does not take"
sed 's/use_ignore: true, //' masks.yaml >keeps.yaml
expect 4 check keeps.yaml
says "have the label -1, which 'pixels' does not ignore"
# Classes that no mask has, and masks without any.
sed 's/\[background, disc, ring\]/[background, disc, ring, star]/; s/"${classes}"/4/' masks.yaml >more.yaml
expect 9 check more.yaml
says "data.train: no pixel of class 'star' in the masks"
expect 9 check masks.yaml 'data.train.mask_ignore=["0", "1", "2"]' 'data.train.mask_classes=null' 'net.layers.13.Convolution.num_filter=3'
says "none of the masks has a pixel of any class"
sed '/UpSampling/d; s/\[up, r1\]/[r1, r1]/; s/Concat: {/&name: k1, /; s/- Convolution: {num_filter: 12, kernel: 3, pad: 1}/- Pooling: {kernel: 2, stride: 2, pool_type: max}\n    &/' masks.yaml >small.yaml
expect 3 train small.yaml --out no
says "the label 'pixels_label' has a class for each of 32x32 pixels, but 'pixels' answers 16x16"
cp -r shapes/train/masks odd && rm odd/000023.png && cp shapes/val/masks/000001.png odd/000024.png
expect 4 check masks.yaml data.train.targets=odd
says "odd/000023.jpg does not exist, nor with the ending of another image"
says "but its mask 'label' has"
expect 0 train masks.yaml --out odd_run -q train.epochs=1 data.train.targets=odd data.max_bad=0.1

finish
