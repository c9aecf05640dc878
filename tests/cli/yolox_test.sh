#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A published detector: init writes a configuration that trains, evaluates and predicts, and begins with the weights of another number of classes.
. "$(dirname "$0")/common.sh"

expect 0 synth shapes --task detection --count 48 --classes 2 --size 64 --val 0.25 --seed 5
expect 0 nets yolox_nano
prints "912,159"
expect 0 init shapes --net yolox_nano --size 64 --output scratch.yaml
expect 0 train scratch.yaml --out scratch -q train.epochs=2 vars.l1_weight=1
expect 0 eval scratch
prints "detections: mean AP"
expect 0 infer scratch shapes/val/images --threshold 0.001 --format csv --output found.csv --annotate drawn
holds "no images are drawn" test "$(ls drawn | wc -l)" = 12
expect 0 export scratch found.onnx
holds "boxes are not suppressed in ONNX" grep -q NonMaxSuppression found.onnx
expect 3 export scratch again.onnx --with-preprocessing
says "the transform letterbox cannot be exported to ONNX"

# --- other classes: all but the scores is taken
expect 0 synth more --task detection --count 24 --classes 3 --size 64 --val 0.25 --seed 6
expect 0 init more --net yolox_nano --weights scratch --size 64 --output tuned.yaml
expect 0 train tuned.yaml --out tuned train.epochs=1
says "head8_score_weight"
expect 0 eval tuned

# --- what it is not for
mkdir -p photos/cat photos/dog
for class in cat dog; do cp shapes/val/images/* photos/$class; done
expect 2 init photos --net yolox_nano --output none.yaml
says "--net yolox_nano finds boxes of objects, which photos does not have"
expect 2 init shapes --net yolox_nano --weights scratch --head-only --output none.yaml
says "--head-only is for images of one class"
expect 3 check scratch.yaml 'net.input=[3, 72, 64]'
says "the input 'data' is [3, 72, 64]: its sides must be multiples of 32, the distance of the points of"
says "for example [3, 64, 64]"
expect 3 check scratch.yaml vars.l1_wieght=1
says "nothing reads the variable 'l1_wieght'"
says "did you mean 'vars.l1_weight'?"
expect 0 init shapes --net yolox_nano --size 70 --output rounded.yaml
prints "net input 3x64x64 (--size 70 is rounded: sides are multiples of 32)"
finish
