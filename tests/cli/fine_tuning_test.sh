#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nets by name, and the recipe that `init --net --weights` writes. Weights of other programs are made here: random ones under their names.
. "$(dirname "$0")/common.sh"

# --- the list of nets
expect 0 nets squeezenet1_1 efficientnet_lite0
prints "squeezenet1_1            3x224x224     1,235,496"
prints "efficientnet_lite0       3x224x224     4,652,008"
expect 0 nets efficientnet_lite0 --json --batch 4
prints '"parameters": 4652008'
prints '"batch_size": 4'
holds "--json says other than JSON" sh -c 'tr -d "\n" <stdout >line && "$0" json <line' "$helper"
expect 3 nets efficientnet_lite9
says "there is no net 'efficientnet_lite9'; did you mean 'efficientnet_lite0'? \`mxtrain nets\` lists them"

# --- a net by name: as many classes as are said, else as the data has; settings of the file win
"$helper" images train 6
"$helper" images val 3
cat >used.yaml <<'END'
net: {use: squeezenet1_1, input: [3, 48, 48]}
data:
  batch_size: 4
  train: {source: image_folder, path: train, transforms: [{resize: [48, 48]}, {normalize: imagenet}]}
  val: {source: image_folder, path: val, transforms: [{resize: [48, 48]}, {normalize: imagenet}]}
train: {epochs: 1, optimizer: {lr: 0.001}}
END
expect 0 plan used.yaml
prints "[4, 64, 23, 23]"
prints "scores"
prints ", 2]"
expect 0 plan used.yaml net.classes=12
prints ", 12]"
expect 0 plan used.yaml net.use=resnet18 vars.smoothing=0.1
prints "11177538 parameters"
expect 3 check used.yaml net.use=resnet8
says "there is no net 'resnet8'"
expect 3 check used.yaml net.use=null
says "the net has no layers"
expect 3 check used.yaml net.use=null net.classes=3
says "net.classes needs net.use"
expect 3 check used.yaml 'net.layers=[Flatten]'
says "net.layers next to net.use: none takes a layer of squeezenet1_1 by its name"
expect 0 train used.yaml --out run -q
holds "the run's configuration is not whole" grep -q 'Convolution' run/config.yaml
holds "the run's configuration depends on the installed nets" sh -c '! grep -q "use:" run/config.yaml'
expect 0 train run/config.yaml --out again -q
expect 0 eval run

# --- weights under the names of the net itself: another run's, with its preparation of images and its variables
expect 0 init train --net squeezenet1_1 --weights run --output own.yaml
says "run: all 50 arrays before the head of squeezenet1_1 fit, of a run: \`vars\` and \`normalize\` as there"
holds "the images are prepared otherwise than in the run" grep -qF 'normalize: imagenet' own.yaml
holds "a net without batch norm has the usual rate" grep -qF 'optimizer: {name: adamw, lr: 0.0001,' own.yaml
holds "the net is not used by name" grep -q '^  use: squeezenet1_1 ' own.yaml
holds "rates do not rise and fall within the run" grep -qF 'lr_schedule: {name: one_cycle} ' own.yaml
holds "something of the recipe is for a number of epochs" sh -c '! grep -qE "freeze|warmup_epochs|early_stop" own.yaml'
holds "the head begins with large weights" grep -qF 'initializers: {head_conv_weight: {normal: 0.01}}' own.yaml
expect 0 train own.yaml --dry-run data.batch_size=4
expect 0 train own.yaml --out tuned train.max_steps=1 data.batch_size=4 -q
ln -s run latest
expect 0 init train --net squeezenet1_1 --weights latest --output linked.yaml
holds "the recipe names a link that changes" grep -qE 'weights: \{file: "run"\}' linked.yaml
expect 0 train used.yaml net.use=efficientnet_lite0 vars.bn_eps=0.002 vars.stochastic_depth=0.1 --out own_lite train.max_steps=1 -q \
  'data.val.transforms=[{resize: {size: [48, 48], interpolation: bicubic, antialias: true}}, {normalize: {mean: 0.5, std: 0.25}}]'
expect 0 init train --net efficientnet_lite0 --weights own_lite --output own_lite.yaml
for line in '  bn_eps: 0.002 ' '  stochastic_depth: 0 ' 'normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}' 'interpolation: bicubic'; do
  holds "the recipe for weights of a run lacks: $line" grep -qF "$line" own_lite.yaml
done
expect 0 export own_lite own_lite.safetensors
expect 0 init train --net efficientnet_lite0 --weights own_lite.safetensors --output named.yaml
says "with its own names: check that \`vars\` and \`normalize\` are those of its training"

# --- the head alone, on features
expect 0 init train --net efficientnet_lite0 --weights own_lite --head-only --size 32 --output head.yaml
for line in 'cache: features' 'freeze: {except: [fc_*], global_stats: true}' '  stochastic_depth: 0 ' 'input: [3, 32, 32]'; do
  holds "the recipe for the head alone lacks: $line" grep -qF "$line" head.yaml
done
expect 0 train head.yaml --out head train.epochs=2
says "features: 1280 numbers for each image"
expect 0 init train --net efficientnet_lite0 --weights head --output of_head.yaml
holds "the recipe for a run's weights lacks its variables" grep -qF '  bn_eps: 0.002 ' of_head.yaml
holds "the recipe for all layers has stochastic depth" grep -qF "  stochastic_depth: 0 " of_head.yaml
expect 0 export head head.onnx
expect 2 init train --net efficientnet_lite0 --head-only --output none.yaml
says "--head-only needs --weights FILE"
expect 0 init train --net squeezenet1_1 --output scratch.yaml
holds "a recipe from scratch names weights" sh -c '! grep -q "weights:" scratch.yaml'
expect 0 train scratch.yaml --dry-run data.batch_size=4
expect 2 init train --weights run --output none.yaml
says "--weights needs --net NAME, the net that they are for"
expect 2 init train --net squeezenet1_1 --weights-family timm --output none.yaml
says "--weights-family needs --weights FILE"
expect 2 init train --net squeezenet1_1 --weights run --weights-family tim --output none.yaml
says "--weights-family tim: the names of squeezenet1_1 are known for torchvision"
expect 3 init train --net resnet18 --weights run --output none.yaml
says "does not fit resnet18: it has 0 of the"
expect 3 init train --net resnet81 --output none.yaml
says "there is no net 'resnet81'"
expect 2 init train --net alexnet --size 64 --output none.yaml
says "alexnet has other parameters for images of 64 pixels than for the 224 that it is made for"
holds "a refused init wrote a file" test ! -e none.yaml

# --- weights under the names of other programs, which decide how images are prepared
python=$(command -v python3 || true)
if [ -n "$python" ]; then
  expect 0 train used.yaml net.use=efficientnet_lite0 --out lite train.max_steps=1 -q
  expect 0 export lite lite.safetensors
  "$python" - <<'P'
import json, re
data = open("lite.safetensors", "rb").read()
size = int.from_bytes(data[:8], "little")
header = json.loads(data[8:8 + size])
header.pop("__metadata__")
BLOCKS = [1, 2, 2, 3, 3, 4, 1]
BN = {"expand": 0, "depthwise": 1, "project": 2}
ENDS = [("_gamma", ".weight"), ("_beta", ".bias"), ("_moving_mean", ".running_mean"), ("_moving_var", ".running_var"),
        ("_weight", ".weight"), ("_bias", ".bias")]

def parts(name):
    for ours, theirs in ENDS:
        if name.endswith(ours):
            return name[:-len(ours)], theirs

def lukemelas(name):
    stem, end = parts(name)
    fixed = {"fc": "_fc", "stem_conv": "_conv_stem", "stem_bn": "_bn0", "head_conv": "_conv_head", "head_bn": "_bn1"}
    if stem in fixed:
        return fixed[stem] + end
    stage, unit, part, kind = re.fullmatch(r"stage(\d)_unit(\d)_(\w+)_(conv|bn)", stem).groups()
    block = sum(BLOCKS[:int(stage) - 1]) + int(unit)
    return f"_blocks.{block}." + (f"_{part}_conv" if kind == "conv" else f"_bn{BN[part]}") + end

def timm(name):
    stem, end = parts(name)
    fixed = {"fc": "classifier", "stem_conv": "conv_stem", "stem_bn": "bn1", "head_conv": "conv_head", "head_bn": "bn2"}
    if stem in fixed:
        return fixed[stem] + end
    stage, unit, part, kind = re.fullmatch(r"stage(\d)_unit(\d)_(\w+)_(conv|bn)", stem).groups()
    names = ["conv_dw", "conv_pw"] if stage == "1" else ["conv_pw", "conv_dw", "conv_pwl"]
    order = ["depthwise", "project"] if stage == "1" else ["expand", "depthwise", "project"]
    at = order.index(part)
    return f"blocks.{int(stage) - 1}.{unit}." + (names[at] if kind == "conv" else f"bn{at + 1}") + end

for family in (lukemelas, timm):
    text = json.dumps({family(name): item for name, item in header.items()}).encode()
    with open(family.__name__ + ".safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data[8 + size:])
P
  expect 0 init train --net efficientnet_lite0 --weights lukemelas.safetensors --output luke.yaml --size 32
  says "lukemelas.safetensors: all 245 arrays before the head of efficientnet_lite0 fit, named as by lukemelas: images are prepared as for those weights"
  prints "net input 3x32x32 in training, 32x32 in validation and prediction (efficientnet_lite0 is made for 224x224; --size is that of training), batches of "
  for line in '  bn_eps: 0.001 ' '  same_padding: true ' '  smoothing: 0.1 ' 'mean: [0.498039216, 0.498039216, 0.498039216]' \
    'random_resized_crop: {size: 32, area: [0.35, 1], interpolation: bicubic, antialias: true}' '  stochastic_depth: 0 ' \
    'optimizer: {name: adamw, lr: 0.0005, weight_decay: 0.05}'; do
    holds "the recipe for lukemelas' weights lacks: $line" grep -qF "$line" luke.yaml
  done
  expect 0 train luke.yaml --dry-run data.batch_size=4
  expect 0 train luke.yaml --out luke train.max_steps=1 data.batch_size=4
  says "arrays taken"
  expect 2 init train --net efficientnet_lite0 --weights lukemelas.safetensors --output none.yaml --size 40
  says "--size 40: weights of lukemelas need a multiple of 32"
  expect 2 init train --net efficientnet_lite0 --weights timm.safetensors --output none.yaml
  says "the names in timm.safetensors are those of timm and timm_tf, which want images prepared differently"
  says "--weights-family timm, or --weights-family timm_tf"
  expect 0 init train --net efficientnet_lite0 --weights timm.safetensors --weights-family timm --output timm.yaml --json
  holds "timm's images are not normalized as ImageNet's" grep -qF 'normalize: imagenet' timm.yaml
  expect 0 init train --net efficientnet_lite0 --weights timm.safetensors --weights-family timm_tf --output tf.yaml
  holds "TensorFlow's padding is missing" grep -qF 'same_padding: true' tf.yaml
  expect 2 init train --net efficientnet_lite0 --weights timm.safetensors --weights-family lukemelas --output none.yaml
  says "the arrays of timm.safetensors have other names than that family's"
fi

# --- what is wrong is said before anything is downloaded; a pin is kept
expect 8 init train --net squeezenet1_1 --weights https://192.0.2.1/w.pth --output used.yaml
says "used.yaml exists already"
expect 2 init train --net squeezenet1_1 --weights https://192.0.2.1/w.pth --weights-family none --output none.yaml
says "--weights-family none: the names of squeezenet1_1 are known for"
expect 0 export run run.safetensors
sum=$(sha256sum run.safetensors | cut -d' ' -f1)
expect 0 init train --net squeezenet1_1 --weights "run.safetensors#sha256=$sum" --output pinned.yaml
holds "the recipe lost the pin" grep -qF "sha256: $sum" pinned.yaml

# --- safetensors under any name
cp run.safetensors ending
expect 0 train used.yaml --dry-run train.weights=ending
says "52 arrays taken"

# --- several files with an index
mkdir shards
expect 0 export run shards/all.safetensors
echo '{"weight_map": {"a": "../run/x.safetensors"}}' >shards/bad.safetensors.index.json
expect 4 train used.yaml --dry-run train.weights=shards/bad.safetensors.index.json
says "which is not the name of a .safetensors file in the same folder"
if [ -n "$python" ]; then
  "$python" - <<'P'
import json
data = open("shards/all.safetensors", "rb").read()
size = int.from_bytes(data[:8], "little")
names = [name for name in json.loads(data[8:8 + size]) if name != "__metadata__"]
json.dump({"weight_map": {name: "all.safetensors" for name in names}}, open("shards/net.safetensors.index.json", "w"))
P
  expect 0 train used.yaml --dry-run train.weights=shards/net.safetensors.index.json
  says "52 arrays taken"
fi
if [ -z "$python" ] && [ "$failures" -eq 0 ]; then
  echo "skipped in part: no python3 to write weights of other programs"
  exit 77
fi
finish
