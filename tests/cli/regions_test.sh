#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torchvision's Faster R-CNN by its name, with few layers and channels: init, training, exact resume, evaluation, prediction, ONNX, and what is refused.
. "$(dirname "$0")/common.sh"
net=fasterrcnn_resnet50_fpn

expect 0 nets $net
prints "$net"
prints "3x1024x1024"

expect 0 synth shapes --task detection --count 40 --classes 2 --size 64 --val 0.25 --seed 5
expect 0 init shapes --net $net --size 64 --output whole.yaml
for line in "  use: $net" "  input: [3, 64, 64]" "      - letterbox: {size: [64, 64], interpolation: bilinear}"; do
  holds "the recipe lacks '$line'" grep -qF "$line" whole.yaml
done
expect 0 plan whole.yaml
prints "PyramidProposalLoss"
prints "RegionTargets"

small="vars.units1=1 vars.units2=1 vars.units3=1 vars.units4=1 vars.pyramid_width=16 vars.head_width=32
  vars.learnt_regions=100 vars.regions=50 vars.region_samples=32 data.batch_size=4"
expect 0 check whole.yaml $small
prints "label 'boxes_label' is [4,6]"
expect 0 train whole.yaml $small --out run -q train.max_steps=6 vars.least_score=0.001
holds "the first batch is not drawn" test -s run/samples/train_batch.png
expect 0 eval run --predictions each.csv
prints "detections: mean AP"
expect 0 infer run shapes/val/images --threshold 0.001 --annotate drawn --output found.csv
holds "the header is another" test "$(head -1 found.csv)" = file,class,score,left,top,right,bottom
holds "boxes are beyond the image, or of no class" awk -F, 'NR > 1 && $2 != "" { n++; bad += $2 != "disc" && $2 != "ring" || $4 < 0 || $6 > 96 || $7 > 96 || $4 > $6 || $5 > $7 } END { exit bad || !n }' found.csv
# The samples are drawn anew in each step, and again when a run is resumed.
expect 0 verify-resume whole.yaml $small --steps 3 vars.anchor_samples=16
expect 0 export run net.onnx
says "rows of class, score, left, top, right, bottom"
holds "regions are not suppressed in ONNX" grep -q NonMaxSuppression net.onnx
holds "regions are not read in ONNX" grep -q RoiAlign net.onnx

# --- frozen batch norms do not change
expect 0 train whole.yaml $small --out frozen -q train.max_steps=2 vars.bn_frozen=true train.optimizer='{name: sgd, lr: 0.001}'
expect 0 export frozen frozen.safetensors
python=$(command -v python3 || true)
[ -z "$python" ] || holds "statistics of a frozen batch norm moved" "$python" - <<'END'
import json, struct, sys
data = open("frozen.safetensors", "rb").read()
size, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + size])
for name, wanted in (("stem_bn_moving_mean", 0), ("stem_bn_moving_var", 1), ("stage2_unit0_a_bn_gamma", 1), ("stage2_unit0_a_bn_beta", 0)):
    first, last = head[name]["data_offsets"]
    if {value for value, in struct.iter_unpack("<f", data[8 + size + first:8 + size + last])} != {wanted}:
        sys.exit(name)
END

# --- what is refused
expect 3 check whole.yaml $small net.input='[3, 72, 64]'
finish
