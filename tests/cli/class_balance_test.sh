#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Classes of uneven size: weights of classes and the focal loss, given and automatic, in training, evaluation and after a stop.
. "$(dirname "$0")/common.sh"

write_points
sed -i '12,$s/0$/1/; 2,11s/1$/0/' points.csv  # 10 of class 0, 6 of class 1
"$helper" images all 12
mkdir -p train/light
cp -r all/dark train/dark
cp $(ls all/light/*.png | head -4) train/light
write_photos train all 4

# --- automatic: by the numbers of a column, by the names of folders
expect 0 train points.yaml --out auto train.class_weights=auto
says "class_weights: auto: 0.8, 1.333"
expect 0 train photos.yaml --out folders train.class_weights=auto
says "class_weights: auto: dark 0.6667, light 2"

# --- given by number and by name, the same
expect 0 train photos.yaml --out numbers 'train.class_weights=[0.5, 3]'
expect 0 train photos.yaml --out names 'train.class_weights={light: 3, dark: 0.5}'
value() { awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == key) k = i } END { print $k }' "$1/metrics.csv"; }
holds "names and numbers differ" [ "$(value numbers val_loss)" = "$(value names val_loss)" ]
expect 0 eval numbers --json
prints "\"loss\":$(value numbers val_loss | cut -c1-7)"

# --- the reported loss is weighted, metrics are not
expect 0 train photos.yaml --out frozen train.optimizer.lr=0 'train.metrics=[cross_entropy]'
expect 0 train photos.yaml --out double train.optimizer.lr=0 'train.metrics=[cross_entropy]' 'train.class_weights=[2, 2]'
# times A B FACTOR: B is A times the factor, but for rounding.
times() { awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(b > 0.9999 * f * a && b < 1.0001 * f * a) }'; }
holds "cross entropy is weighted" times "$(value frozen val_cross_entropy)" "$(value double val_cross_entropy)" 1
holds "the loss is not weighted" times "$(value frozen val_loss)" "$(value double val_loss)" 2
expect 0 train photos.yaml --out smooth train.optimizer.lr=0 'train.metrics=[cross_entropy]' 'net.layers=[Flatten, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax, smooth_alpha: 0.5}}]'
holds "the loss is not smoothed" awk -v a="$(value smooth val_cross_entropy)" -v b="$(value smooth val_loss)" 'BEGIN { exit !(b > 1.01 * a) }'
focal='net.layers=[Flatten, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax, focal_gamma: 2, smooth_alpha: 0.1}}]'
expect 0 train photos.yaml --out focal train.optimizer.lr=0 "$focal"
holds "the focal loss is not below the plain one" awk -v a="$(value frozen val_loss)" -v b="$(value focal val_loss)" 'BEGIN { exit !(b < a / 2) }'

# --- with mixed examples and steps of two batches, stopped and resumed: the same bytes
recipe=("$focal" train.class_weights=auto train.epochs=3 train.mixup=0.4 train.cutmix=1 train.grad_accum=2)
expect 0 train photos.yaml --out whole "${recipe[@]}"
expect 0 train photos.yaml --out broken "${recipe[@]}" train.save.every=1steps train.max_steps=3
cp broken/checkpoints/previous broken/checkpoints/last
expect 0 train photos.yaml --out broken "${recipe[@]}" --resume
holds "a resumed run ends in other bytes" "$helper" compare whole/checkpoints/last broken/checkpoints/last
expect 0 plan photos.yaml data.train.path=gone 'net.layers.1.FullyConnected.num_hidden=2' train.class_weights=auto  # plans without data

# --- files for MXNet contain only parameters that it knows
expect 0 export whole plain@1
holds "the exported net holds parameters of our own" test "$(grep -c 'class_weights\|focal_gamma' plain-symbol.json)" = 0
expect 0 infer plain@1 all --size 3,8,8

# --- what cannot be
expect 3 train photos.yaml 'train.class_weights={lihgt: 3}'
says "train.class_weights: there is no class 'lihgt'; did you mean 'light'?"
expect 3 train photos.yaml 'train.class_weights=[1, 2, 3]'
says "train.class_weights: got 3 numbers for the 2 classes of the net"
expect 3 train photos.yaml train.class_weights=auto data.train.balanced=true
says "train.class_weights: auto and data.train.balanced both compensate for class imbalance: keep one of the two"
expect 3 train points.yaml 'net.layers=[{FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: softmax}}]' train.class_weights=auto 'train.metrics=[mse]'
says "train.class_weights: the net has 0 SoftmaxOutput, expected one"
expect 3 train points.yaml 'net.layers.1={SoftmaxOutput: {name: softmax, class_weights: [1, 2]}}' 'train.class_weights=[1, 2]'
says "train.class_weights: 'softmax' already has class_weights: keep one of the two"
expect 3 train points.yaml 'net.layers.1={SoftmaxOutput: {name: softmax, class_weights: [1, 2, 3]}}'
says "class_weights has 3 numbers, but the data of shape [4, 2] have 2 classes"
expect 3 train points.yaml 'net.layers.1={SoftmaxOutput: {name: softmax, class_weights: [1, -2]}}'
says "expected numbers of 0 or more"
expect 3 train points.yaml 'net.layers.1={SoftmaxOutput: {name: softmax, gamma: 2}}'
says "did you mean 'focal_gamma'?"
finish
