#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Frozen layers: features that are computed once, layers that learn after some epochs, rates that decay with depth.
. "$(dirname "$0")/common.sh"

"$helper" images train 12
"$helper" images val 6
cat >head.yaml <<'END'
name: head
net: {use: efficientnet_lite0, input: [3, 32, 32]}
vars: {stochastic_depth: 0}
data:
  batch_size: 4
  train: {source: image_folder, path: train, shuffle: true, transforms: [{resize: [32, 32]}, {normalize: imagenet}]}
  val: {source: image_folder, path: val, transforms: [{resize: [32, 32]}, {normalize: imagenet}]}
train:
  epochs: 3
  optimizer: {name: adam, lr: 0.001}
  freeze: {except: [fc_*], global_stats: true}
  ema: 0.9
  metrics: [accuracy]
END

# --- features that are computed once: the same bits as without, also of a resumed run
expect 0 train head.yaml --out plain -q
expect 0 train head.yaml --out cached data.cache=features
says "computing the features of 36 images once: "
says "features: 1280 numbers for each image, 18"
holds "features gave other bits" "$helper" compare plain/checkpoints/last cached/checkpoints/last
holds "features gave another best model" "$helper" compare plain/checkpoints/best cached/checkpoints/best
holds "features gave other metrics" sh -c '[ "$(cut -d, -f1-3,6- plain/metrics.csv)" = "$(cut -d, -f1-3,6- cached/metrics.csv)" ]'
expect 0 eval cached
expect 0 infer cached val
expect 0 train head.yaml --dry-run data.cache=features
says "dry run passed"
expect 9 check head.yaml data.cache=features  # the small images of both sets are the same
says "learning rates, as multiples of the schedule's:"
expect 0 verify-resume head.yaml data.cache=features train.epochs=1

# --- runs of a sweep share them, where what is swept leaves them as they are
expect 0 sweep head.yaml --out rates data.cache=features 'train.optimizer.lr=[0.01,0.001]'
says "features of frozen layers are shared: runs that make the same of their images compute them once, in rates/features"
holds "the second run did not find the features of the first" grep -q "features: 24 of 24 training images are in" rates/0002/mxtrain.log
holds "the first run found features" grep -q "features: 0 of 24 training images are in" rates/0001/mxtrain.log
holds "shared features gave other bits" "$helper" compare rates/0002/checkpoints/last cached/checkpoints/last
holds "shared features gave another best model" "$helper" compare rates/0002/checkpoints/best cached/checkpoints/best
holds "the features were kept" [ ! -e rates/features ]
expect 0 sweep head.yaml --out crops data.cache=features train.epochs=1 'data.train.transforms=[[{resize: [32, 32]}],[{resize: [36, 36]},{center_crop: [32, 32]}]]'
holds "features of other transforms were shared" grep -q "features: 0 of 24 training images are in" crops/0002/mxtrain.log
holds "features of validation were not shared" grep -q "features: 12 of 12 validation images are in" crops/0002/mxtrain.log
expect 0 sweep head.yaml --out folds data.cache=features train.epochs=1 --folds 3
holds "a fold did not find the features of another" grep -q "features: 8 of 16 training images are in" folds/0002/mxtrain.log
holds "all features are known by then" grep -q "features: 16 of 16 training images are in" folds/0003/mxtrain.log
expect 2 train head.yaml --out none --features kept
says "--features kept: the configuration computes no features once"

# --- what it takes, before it is taken
expect 0 plan head.yaml data.cache=features
prints "features: "
prints "computed once: 1280 numbers for each example, 180.1 KiB in memory"
prints "frozen  stem"
expect 0 plan head.yaml data.cache=features --json
prints '"numbers_per_example": 1280'
holds "plan counts the memory of layers that training does not run" sh -c '
  all=$("$0" plan head.yaml --json | grep -o "\"full_bytes\": [0-9]*" | head -1 | grep -o "[0-9]*$")
  head=$("$0" plan head.yaml --json data.cache=features | grep -o "\"full_bytes\": [0-9]*" | head -1 | grep -o "[0-9]*$")
  [ -n "$all" ] && [ -n "$head" ] && [ "$head" -lt "$all" ]' "$program"
expect 6 train head.yaml --out none data.cache=features data.cache_bytes=100KiB
says "and the limit is 100 KiB"
expect 2 plan head.yaml data.cache=features --time
says "with data.cache: features training has none"
expect 0 plan head.yaml --time train.freeze.epochs=1
says "steps are measured in which all layers learn, as after the first 1 epoch"
expect 3 plan head.yaml data.cache=features 'data.train.transforms=[{resize: [32, 32]}, flip, {normalize: imagenet}]'
says "and 'flip' is random"
expect 3 plan head.yaml data.cache=features train.amp=bf16
says "features cannot be computed once with mixed precision"
expect 6 plan head.yaml data.cache=features data.cache_bytes=100KiB
says "and the limit is 100 KiB"
expect 0 plan head.yaml data.cache=features --memory 200MiB --json
holds "the memory of what computes the features is not counted" sh -c '
  batch=$(tr -d " \n" <stdout | grep -o "\"batch_size\":[0-9]*" | tail -1 | grep -o "[0-9]*$")
  [ "$batch" -gt 10 ] && [ "$batch" -lt 2000 ]'
expect 0 lr-find head.yaml --steps 20 --to 1000 train.freeze.epochs=1
says "all layers learn"

# --- what forbids it, by name
expect 3 check head.yaml data.cache=features 'data.train.transforms=[{resize: [32, 32]}, flip, {normalize: imagenet}]'
says "data.cache: features needs images that are the same in every epoch, and 'flip' is random"
expect 3 train head.yaml --out none data.cache=features train.mixup=0.2
says "and train.mixup mixes them"
expect 3 train head.yaml --out none data.cache=features train.freeze.global_stats=false
says "stem_bn"
says "normalizes by the mean and variance of each batch"
says "train.freeze.global_stats"
expect 3 train head.yaml --out none data.cache=features 'train.freeze.except=[fc_*, stem_conv_weight]'
says "reads the input 'data', and it learns"
expect 3 train head.yaml --out none data.cache=features train.kvstore.workers=2
says "features cannot be computed once with several workers"
holds "a refused run left a folder" test ! -e none
expect 0 train head.yaml --out random data.cache=features vars.stochastic_depth=0.2 train.max_steps=1
says "are computed in every step, since it draws random numbers"

# --- the head first, then all: in one run, stopped and resumed where the others begin to learn
expect 0 train head.yaml --out both train.freeze.epochs=2 train.epochs=4
says "epoch 3: the frozen parameters learn from here on"
says "0 to 1 in the first 30 % after 2 epochs"
says "frozen"
expect 0 train head.yaml --out both_cached train.freeze.epochs=2 train.epochs=4 data.cache=features -q
holds "features gave other bits in later epochs" "$helper" compare both/checkpoints/last both_cached/checkpoints/last
for epochs in 2 4; do
  expect 0 verify-resume head.yaml train.freeze.epochs=2 train.epochs=$epochs data.cache=features
done
rm -rf both/checkpoints/last both/checkpoints/previous both/checkpoints/best both/checkpoints/epoch-0003 both/checkpoints/epoch-0004
mv both/checkpoints/epoch-0002 both/checkpoints/last
expect 0 train both --resume -q
holds "a run resumed where layers begin to learn ends in other bits" "$helper" compare both/checkpoints/last both_cached/checkpoints/last
holds "layers that learn were said to stay frozen" sh -c '! grep -q "never learn" both/mxtrain.log'
expect 0 train head.yaml --dry-run train.freeze.epochs=4 train.epochs=4
says "train.freeze.epochs is 4, and the run has 4 epochs: the frozen parameters never learn"
expect 0 plan head.yaml train.freeze.epochs=2 train.freeze.warmup=0.25
prints "0 to 1 in the first 25 % after 2 epochs"
expect 0 plan head.yaml train.freeze.epochs=2 train.freeze.warmup=0
prints "1 after 2 epochs"
expect 3 check head.yaml train.freeze.warmup=0.2
says "train.freeze.warmup is for layers that are frozen for some epochs"
expect 3 check head.yaml train.freeze.epochs=2 train.freeze.warmup=1.5
says "train.freeze.warmup"
expect 3 check head.yaml 'train.freeze.except=[fd_*]'
says "train.freeze.except: 'fd_*' matches no parameter"
expect 3 check head.yaml 'train.freeze.except=[]'
says "train.freeze.global_stats is for layers that are frozen, and none are"
expect 3 check head.yaml 'train.freeze={epochs: 3, except: [], global_stats: false}'
says "train.freeze.epochs is for layers that are frozen, and none are"

# --- rates that decay with depth, times those of patterns
expect 0 plan head.yaml 'train.freeze.except=[]' train.freeze.global_stats=false train.lr_decay=0.5 'train.lr_mult={stage7*: 2}' --json
holds "the head has another rate than the schedule" sh -c 'tr -d " \n" <stdout | grep -qF "{\"layers\":\"fc\",\"multiplier\":1.0,"'
holds "a pattern does not multiply, or the layer before the head has another rate" \
  sh -c 'tr -d " \n" <stdout | grep -qF "{\"layers\":\"stage7_unit0tohead_conv\",\"multiplier\":0.5,"'
holds "rates do not decay by units" sh -c 'tr -d " \n" <stdout | grep -qF "{\"layers\":\"stage6_unit3\",\"multiplier\":0.125,"'
expect 0 train head.yaml --out decayed 'train.freeze.except=[]' train.freeze.global_stats=false train.lr_decay=0.5 train.max_steps=2
says "0.125"
cat >skip.yaml <<'END'
net:
  input: [3, 32, 32]
  layers:
    - Convolution: {name: a, num_filter: 3, kernel: 3, pad: 1}
    - Convolution: {name: b, num_filter: 3, kernel: 3, pad: 1}
    - Concat: {name: both, inputs: [b, data]}
    - FullyConnected: {name: fc, num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: image_folder, path: train, transforms: [{resize: [32, 32]}, {normalize: imagenet}]}
train: {epochs: 1, lr_decay: 0.5}
END
expect 0 train skip.yaml --out skipped train.max_steps=1
says "train.lr_decay has little effect: the net has 2 layer groups, and one ends only where"
expect 3 check head.yaml train.lr_decay=1.5
says "train.lr_decay = 1.5 is out of range"
finish
