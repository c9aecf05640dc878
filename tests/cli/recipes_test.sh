#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training options: ends of a run, gradient accumulation, averages, name patterns, mixed examples. A stopped and resumed run ends in the
# same bytes as an uninterrupted one.
. "$(dirname "$0")/common.sh"

write_points
"$helper" images train 12
"$helper" images val 4
write_photos train val 6

# --- early stopping, and what comes after it
expect 0 train points.yaml --out early train.epochs=50 train.early_stop=2 train.optimizer.lr=0 --json
says "stopped early after 3 epochs: 2 without improvement of accuracy (train.early_stop)"
prints '"end":"no_improvement"'
expect 0 train points.yaml --out early --resume train.epochs=50 train.early_stop=2 train.optimizer.lr=0
says "the run is complete after"
expect 0 train points.yaml --out early --extend train.epochs=1 train.optimizer.lr=0 train.lr_schedule=cosine
says "extended by 4 steps; the schedule 'cosine' restarts at a learning rate of 0 and ends at 0"

# --- target: the run stops when the metric reaches it
expect 0 train points.yaml --out good train.epochs=50 train.early_stop.target=0.1 --json
says "accuracy reached 0.1000 after 1 epoch (train.early_stop.target)"
prints '"end":"target"'
expect 0 train points.yaml --out good --resume train.epochs=50 train.early_stop.target=0.1
says "the run is complete after"
expect 0 train points.yaml --out less 'train.metrics=[cross_entropy]' train.epochs=50 'train.early_stop={target: 100, patience: 5}' --json
prints '"end":"target"'
expect 0 train points.yaml --out never train.epochs=2 train.early_stop.target=1 --json
prints '"end":"complete"'
expect 3 train points.yaml train.early_stop.target=90
says "train.early_stop.target = 90: accuracy is at most 1"
says "90 % is 0.9"
expect 3 train points.yaml 'train.early_stop={min_delta: 0.1}'
says "train.early_stop.min_delta needs train.early_stop.patience"

# --- time limits have a unit, and the run can be continued
expect 3 train points.yaml train.time_limit=5
says "train.time_limit: expected a time with its unit such as 90min, 2h or 30s, got '5'"
expect 0 train points.yaml --out timed train.epochs=100000000 train.save.every=1000000epochs train.time_limit=1s --json
says "train.time_limit of 0:01 reached after"
says "to continue: mxtrain train timed --resume"
prints '"end":"time_limit"'
holds "a run that its time limit ended is not saved" test -s timed/checkpoints/last
prints '"total_steps":400000000,"lr":0.01'
lacks() { ! grep -qF -- "$1" stderr; }
holds "a constant schedule is reported as interrupted" lacks "the learning rate of schedule"
# a schedule over the whole run is interrupted: reported as soon as this is known, and at the end
expect 0 train points.yaml --out cut train.epochs=100000000 train.save.every=1000000epochs train.time_limit=1s train.lr_schedule=cosine train.report_every=5
says "warning: at this speed train.time_limit ends the run after about"
says "of 400000000 steps, before the schedule 'cosine' is complete; train.epochs="
says "steps; the learning rate of schedule 'cosine' is 0.01, its final rate would be 0; to continue: mxtrain train cut --resume"

# --- several best checkpoints
expect 0 train points.yaml --out bests train.epochs=3 'train.metrics=[accuracy, cross_entropy]' 'train.best=[cross_entropy, accuracy]'
holds "no best by the second metric" test -s bests/checkpoints/best-accuracy
expect 3 train points.yaml 'train.best=[accuracy, mse]'
says "train.best.metric: 'mse' is not measured"

# --- parameter name patterns
expect 3 check points.yaml 'train.freeze=["fullyconected0*"]'
says "train.freeze.layers: 'fullyconected0*' matches no parameter; did you mean 'fullyconnected0*'?"
expect 3 train points.yaml 'train.lr_mult={"*_bias": lots}'
says "train.lr_mult: expected a number from 0 to 1000000, got 'lots'"
expect 3 train points.yaml 'train.freeze=["*"]'
says "every parameter is frozen: nothing would be trained"
expect 0 train points.yaml --out patterns 'train.freeze=["*_bias"]' 'train.lr_mult={"*_weight": 0.5}'

# --- optimizers, and one without a schedule
for optimizer in rmsprop adagrad adadelta ftrl lamb lars; do
  expect 0 train points.yaml --out $optimizer train.optimizer=$optimizer
done
expect 3 train points.yaml train.optimizer=ftrl train.lr_schedule=cosine
says "optimizer ftrl requires a constant learning rate"
expect 3 train points.yaml 'train.optimizer={name: rmsprop, gamma1: 0.9}'
says "did you mean 'rho'?"

# --- mixed images, averages and steps of two batches: stopped after any step and resumed, the same bytes
recipe=(train.epochs=4 train.mixup=0.2 'train.cutmix={alpha: 1, off_epochs: 1}' train.ema=0.9 train.grad_accum=2 data.train.balanced=true
  'data.train.transforms=[{random_resized_crop: 8}, trivial_augment, {rand_augment: {n: 1, magnitude: 5}}]'
  'train.lr_schedule={name: plateau, patience: 1}' 'train.metrics=[accuracy, f1, auc]')
expect 0 train photos.yaml --out whole "${recipe[@]}" data.workers=1
for steps in 1 3 6; do
  expect 0 train photos.yaml --out broken "${recipe[@]}" --overwrite train.save.every=1steps train.max_steps=$steps
  cp broken/checkpoints/previous broken/checkpoints/last  # as killed before the run was ended
  expect 0 train photos.yaml --out broken "${recipe[@]}" --resume data.workers=3
  holds "stopped after $steps steps the run ends in other bytes" "$helper" compare whole/checkpoints/last broken/checkpoints/last
done
expect 0 eval whole val
expect 0 infer whole val
expect 0 bench photos.yaml train.mixup=0.2 --seconds 0.05 --rounds 1
prints "us per step, to push its work"
holds "one measurement has a spread" grep -q "^  synthetic data: [0-9.e+]* images/s$" stdout
# --- few measurements have a lowest and a highest value; quartiles begin at five
expect 0 bench photos.yaml --synthetic --seconds 0.01 --rounds 3
holds "three measurements: no lowest and highest" grep -q "^  synthetic data: .* (lowest [0-9.e+]*, highest [0-9.e+]*)$" stdout
expect 0 bench photos.yaml --synthetic --seconds 0.01 --rounds 3 --json
prints '"quartiles":null'
expect 0 bench photos.yaml --synthetic --seconds 0.01 --rounds 5
prints " (quartiles "
expect 3 train photos.yaml 'net.layers=[Flatten, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax, normalization: batch}}]' train.mixup=1
says "command line:2:13: error: train.mixup: 'softmax' has use_ignore or normalization"
finish
