#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images as labels: a denoiser on MNIST's files, on folders with targets beside them, and on a table; what is refused.
. "$(dirname "$0")/common.sh"

# --- pixels: the image itself is the target
"$helper" idx mnist 200 12
cat >denoise.yaml <<'END'
name: denoise
seed: 3
net:
  input: [1, 12, 12]
  layers:
    - Convolution: {num_filter: 4, kernel: 3, pad: 1}
    - Activation: {act_type: relu}
    - Convolution: {num_filter: 1, kernel: 3, pad: 1}
    - LinearRegressionOutput: {name: clean}
data:
  batch_size: 20
  train: {source: mnist, path: mnist, label: image, transforms: [{rotate: 10}, {gaussian_noise: 0.2}]}
  val: {split: 0.2, transforms: [gaussian_noise: 0.2]}
train: {epochs: 3, optimizer: {name: adam, lr: 0.01}, metrics: [mse, rmse, mae, psnr]}
END
expect 0 check denoise.yaml
prints "label 'clean_label' is [1,12,12]"
expect 0 train denoise.yaml --out run
holds "the first batch is not drawn" test -s run/samples/train_batch.png
holds "the sheet of the first batch is not there" test -s run/samples/train_batch.png
holds "no metric" grep -q 'val_rmse.*val_psnr' run/metrics.csv
expect 0 verify-resume denoise.yaml --steps 11
expect 0 train denoise.yaml --out cached data.cache=ram -q
holds "a cache changes the run" cmp -s <(cut -d, -f6- run/metrics.csv) <(cut -d, -f6- cached/metrics.csv)
expect 3 train denoise.yaml --out no data.train.targets=mnist
says "targets"
expect 3 train denoise.yaml --out no train.mixup=0.2
says "train.mixup"

# --- a net that answers a list in place of an image
sed -e 's/.*LinearRegressionOutput.*/    - FullyConnected: {num_hidden: 144}\n&/' denoise.yaml >flat.yaml
expect 3 train flat.yaml --out no
says "the label 'clean_label' is an image of shape [1, 12, 12], but 'clean' answers [144]"
says "add Reshape: {shape: [0, 1, 12, 12]} before the loss"
sed -i 's/.*LinearRegressionOutput.*/    - Reshape: {shape: [0, 1, 12, 12]}\n&/' flat.yaml
expect 0 train flat.yaml --out flat train.epochs=1

# --- files: targets in a folder of the same paths
expect 0 synth shapes --count 40 --classes 2 --size 24 --seed 3
mv shapes/train noisy && cp -r noisy clean && mv shapes/val noisy_val && cp -r noisy_val clean_val
cat >pairs.yaml <<'END'
name: pairs
net:
  input: [3, 12, 12]
  layers:
    - Convolution: {num_filter: 3, kernel: 3, pad: 1}
    - MAERegressionOutput: {name: clean}
data:
  batch_size: 8
  train: {source: image_folder, path: noisy, label: image, targets: clean, transforms: [{random_crop: 12}, flip, {normalize: auto}]}
  val: {source: image_folder, path: noisy_val, targets: clean_val, transforms: [{center_crop: 12}, {normalize: auto}]}
train: {epochs: 1, metrics: [mae]}
END
expect 0 check pairs.yaml
prints "label 'clean_label' is [3,12,12]"
expect 0 train pairs.yaml --out pairs
expect 0 eval pairs
prints "psnr"
holds "the worst images are not shown" test -s pairs/eval/worst.png
expect 0 train pairs.yaml --out pairs --overwrite  # what eval wrote is the run's
expect 0 eval pairs
expect 0 eval pairs --format csv
prints "images,mse,mae,psnr"
expect 0 eval pairs --predictions each.csv
holds "a line for each image is missing" sh -c 'head -1 each.csv | grep -qx "file,mse,mae,psnr" && test "$(wc -l <each.csv)" = 9'

# --- infer writes images at the paths of their inputs, and names them
expect 0 infer pairs noisy_val --images made --format csv
holds "the images are not named" sh -c 'head -1 stdout | grep -qx "file,image" && sed 1d stdout | cut -d, -f2 | xargs ls >listed && test "$(wc -l <listed)" = 8'
holds "folders are not kept" sh -c 'test "$(ls made/noisy_val | wc -l)" = 2'
expect 0 infer pairs noisy_val --images made --format jsonl  # the same images again are no others
holds "the JSON lines name no image" sh -c 'head -1 stdout | grep -q "\"file\":\"made/noisy_val/.*png\"" && test "$(find made -name "*.png" | wc -l)" = 8'
expect 2 infer pairs noisy_val
says "this model predicts images: give --images DIR"
expect 2 infer pairs noisy_val --images made --tta flip
says "--tta averages scores and values"
expect 2 infer pairs noisy_val --images made --annotate drawn
says "--annotate draws predictions on the images that they are of"

# --- an image that a user gives gets no noise
one=$(find noisy_val -type f | sort | head -1)
expect 0 train pairs.yaml --out noise 'data.val.transforms=[{center_crop: 12}, {gaussian_noise: 0.5}]'
expect 0 infer noise "$one" "$one" "$one" --images same
holds "one image three times gives several" sh -c 'test "$(find same -name "*.png" | wc -l)" = 1'

file=$(cd noisy && find . -type f | sort | sed -n '3s|^\./||p')
rm "clean/$file"
expect 4 check pairs.yaml
says "its target $work/clean/$file does not exist, nor with the ending of another image"
expect 3 check pairs.yaml data.val.targets=null
says "data.train has targets and data.val has none"
expect 3 check pairs.yaml data.train.label=given
says "data.train.targets needs label: image"

# --- a table: a column of targets
{ echo from,to; (cd noisy_val && find . -type f | sort) | sed 's|^\./\(.*\)$|noisy_val/\1,clean_val/\1|'; } >pairs.csv
expect 0 train pairs.yaml --out table \
  data.batch_size=2 'data.train={source: csv, path: pairs.csv, label: image, columns: {data: from, clean_label: to}, transforms: [{random_crop: 12}]}' 'data.val={split: 0.25}'
expect 0 eval table
finish
