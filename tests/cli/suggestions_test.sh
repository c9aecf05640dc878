#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names from other tools, where their users would type them: each error suggests the equivalent here.
. "$(dirname "$0")/common.sh"

write_points
"$helper" images photos 8
write_photos photos photos 4

# means TYPED ANSWER: an override of points.yaml
means() {
  expect 3 train points.yaml --dry-run "$1"
  says "$2"
}

# --- keys
means 'model={layers: []}' "did you mean 'net'?"
means callbacks=3 "train.early_stop, train.best, train.save and train.lr_schedule replace callbacks"
means train.early_stopping=3 "did you mean 'train.early_stop'?"
means train.patience=3 "did you mean 'train.early_stop'?"
means patience=3 "did you mean 'train.early_stop'?"
means train.class_weight=3 "did you mean 'train.class_weights'?"
means train.label_smoothing=0.1 "- SoftmaxOutput: {smooth_alpha: 0.1}"
means train.loss=mse "the loss is the last layer of the net"
means train.clipnorm=1 "did you mean 'train.clip.norm'?"
means train.shuffle=true "did you mean 'data.train.shuffle'?"
means train.workers=3 "did you mean 'data.workers'?"
means train.dtype=mixed_float16 "did you mean 'train.amp'?"
means train.device=gpu "--device cpu, gpu or gpu:N"
means train.checkpoint=5epochs "did you mean 'train.save'?"
means train.seed=5 "did you mean 'seed', at the top level?"
means data.augmentation=flip "did you mean 'data.train.transforms'?"
means data.image_size=64 "did you mean 'net.input'?"
means data.directory=x "did you mean 'data.train.path'?"
means 'train.optimizer={name: sgd, nesterov: true}' "train.optimizer: nag is sgd with Nesterov's momentum"
for name in reduce_lr_on_plateau ReduceLROnPlateau; do means train.lr_schedule=$name "did you mean 'plateau'?"; done
for name in CosineDecay cosine_decay CosineAnnealing; do means train.lr_schedule=$name "did you mean 'cosine'?"; done
means 'train.metrics=[val_accuracy]' "write 'accuracy': every metric is measured on both training and validation data"
means 'train.metrics=[precision]' "\`mxtrain eval\` reports precision and recall of each class"
means 'train.metrics=[top_5_accuracy]' "write {top_k: 5}"
means 'train.freeze=[fullyconnected0]' "did you mean 'fullyconnected0*'?"

# --- transforms: their names; errors are reported at the line
transform() {
  expect 3 train photos.yaml --dry-run "data.train.transforms=[$1]"
  says "$2"
}
for name in RandomFlip random_flip; do transform $name "did you mean 'flip'?"; done
for name in RandomZoom random_zoom zoom; do transform $name "did you mean 'scale'?"; done
transform random_rotation "did you mean 'rotate'?"
transform random_brightness "did you mean 'brightness'?"
transform ColorJitter "use the transforms brightness, contrast, saturation and hue"
for name in Rescaling '{rescale: 1./255}'; do transform "$name" "pixels are always divided by 255"; done
cat >lines.yaml <<'END'
include: photos.yaml
data:
  train:
    transforms:
      - {random_resized_crop: 8}
      - {scale: 0.2}
      - {rotate: 400}
END
expect 3 train lines.yaml
says "lines.yaml:6:10: error: scale: factor = "
says "lines.yaml:7:10: error: rotate: degrees = "
transform '{normalize: {mean: 0.5}}, flip' "normalize is not the last of the transforms"
expect 0 train photos.yaml --dry-run 'data.train.transforms=[{random_resized_crop: 8}, {rotate: 0.1}]'
says "warning: command line:1:51: rotate: 0.1 is less than a degree"
says "0.1 of a full turn, as in Keras, is 36"
expect 0 train photos.yaml --dry-run 'data.train.transforms=[{random_resized_crop: 8}, {rotate: {degrees: 15, fill_mode: reflect}}]'
cp -r photos wide && "$helper" jpeg wide/light/wide.jpg 48
expect 3 train photos.yaml --dry-run data.train.path=wide 'data.train.transforms=[flip]'
says "command line: the transforms produce images of different sizes: $work/wide/dark/000.png has 12x12 pixels, $work/wide/light/wide.jpg has 48x48; end the transforms"

# --- layers: the line to write
layer() {
  expect 3 train points.yaml --dry-run "net.layers=[$1, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]"
  says "$2"
}
layer '{Activation: relu}' "write - Activation: {act_type: relu}"
layer '{Dropout: 0.3}' "write - Dropout: {p: 0.3}"
layer '{Dense: 10}' "did you mean '- FullyConnected: {num_hidden: 10}'?"
layer '{MaxPooling2D: 2}' "did you mean '- Pooling: {kernel: 2, stride: 2}'?"
layer '{AveragePooling2D: 2}' "did you mean '- Pooling: {pool_type: avg, kernel: 2, stride: 2}'?"
layer '{Convolution: {num_filter: 3, kernel: 3, activation: relu}}' "add the activation as a layer after this one: - Activation: {act_type: relu}"
layer '{Convolution: {num_filter: 3, kernel: 5, pad: SAME}}' "write pad: same"
layer '{Deconvolution: {num_filter: 3, kernel: 5, pad: same}}' "write pad: 2, which keeps the size at stride 1"
layer '{Convolution: {num_filter: 3, kernel: 5, pad: valid}}' "write pad: 0"
layer '{Activation: {act_type: gelu}}' "write - gelu"
layer '{Activation: {act_type: softplus}}' "write - Activation: {act_type: softrelu}"
layer '{Activation: {act_type: rellu}}' "did you mean 'relu'?"
layer PReLU "did you mean 'LeakyReLU: {act_type: prelu}'?"
layer DepthwiseConv2D "did you mean 'Convolution: {num_group: CHANNELS}'?"
for name in conv Conv2D conv2d; do layer $name "did you mean 'Convolution'?"; done
layer AdaptiveAvgPool2d "did you mean 'AdaptiveAvgPooling2D'?"
layer '{AdaptiveAvgPool2d: 7}' "did you mean '- AdaptiveAvgPooling2D: {output_size: 7}'?"
layer nn.Upsample "did you mean 'UpSampling: {scale: 2, sample_type: nearest, num_args: 1}'?"
layer '{nn.Upsample: 4}' "did you mean '- UpSampling: {scale: 4, sample_type: nearest, num_args: 1}'?"
layer '{interpolate: 3}' "did you mean '- UpSampling: {scale: 3, sample_type: nearest, num_args: 1}'?"
layer UpsamplingBilinear2d "did you mean 'BilinearResize2D: {scale_height: 2, scale_width: 2}'?"
layer '{unsqueeze: 2}' "did you mean '- expand_dims: {axis: 2}'?"
layer '{ZeroPad2d: 3}' "did you mean '- Pad: {mode: constant, pad_width: [0, 0, 0, 0, 3, 3, 3, 3]}'?"
layer '{ELU: 0.5}' "did you mean '- LeakyReLU: {act_type: elu, slope: 0.5}'?"
layer '{Hardtanh: 1}' "did you mean '- clip: {a_min: -1, a_max: 1}'?"
layer '{normalize: imagenet}' "images are normalized in data: transforms: [normalize: imagenet]"
layer PixelShuffle "depth_to_space"
layer '{Activation: {act_type: elu}}' "write - LeakyReLU: {act_type: elu, slope: 1}"
layer nn.GRU "did you mean 'RNN: {mode: gru, state_size: 128, num_layers: 1}'?"
layer '{LSTM: 200}' "did you mean '- RNN: {mode: lstm, state_size: 200, num_layers: 1}'?"
layer nn.Transformer "not supported yet"
layer nn.GELU "did you mean 'gelu'?"
layer SiLU "did you mean 'silu'?"
layer BilinearResize2D "BilinearResize2D: mode = size needs height or scale_height"
layer InputLayer "net.input is the shape of an example"
expect 3 train points.yaml --dry-run 'net.layers=[{FullyConnected: {num_hidden: 2}}, Softmax, {SoftmaxOutput: {name: softmax}}]'
says "SoftmaxOutput follows Softmax 'softmaxoutput0', which is a loss too"
says "remove one of them"

# --- nets; a key over the short form of its section
no_net() {
  expect 3 init photos --net "$1" --output none.yaml
  says "there is no net '$1'$2 \`mxtrain nets\` lists them"
}
no_net efficientnet_lit0 "; did you mean 'efficientnet_lite0'?"
no_net ResNet-50 "; did you mean 'resnet50'?"
no_net effnet "; did you mean efficientnet_b0, efficientnet_lite0, efficientnet_v2_s?"
no_net mynet ";"
sed 's/^train: {/&early_stop: 5, /' points.yaml >short.yaml
expect 0 train short.yaml --out short train.early_stop.min_delta=0.01 train.epochs=1
holds "the patience is lost" grep -q 'patience: 5' short/config.yaml
expect 0 train short.yaml --dry-run train.early_stop.patience=0

# --- commands, flags, help
for pair in fit:train predict:infer summary:plan evaluate:eval; do
  expect 2 ${pair%:*} points.yaml
  says "did you mean \`mxtrain ${pair#*:}\`?"
done
expect 2 train points.yaml --time-limit 5
says "did you mean train.time_limit=TIME, such as 90min, 2h or 30s?"
expect 3 ops Conv2D
says "did you mean Convolution?"
expect 0 help augmentation
prints "data.train.transforms (list"
expect 0 help random_zoom
prints "scale: enlarges"
# --- flags of all commands stand before the command, too
for flags in -q --json "--threads 1" --threads=1 "--color never -q"; do
  # shellcheck disable=SC2086 # several words
  expect 2 $flags infer model images --top-k 0
  says "--top-k: expected a whole number from 1 to 2147483647, got '0'; see \`mxtrain infer --help\`"
  # shellcheck disable=SC2086
  expect 2 $flags infer model images --topk 3
  says "unknown flag '--topk'; did you mean '--top-k'?"
  # shellcheck disable=SC2086
  expect 2 $flags trian points.yaml
  says "unknown command 'trian'; did you mean 'train'?"
  # shellcheck disable=SC2086
  expect 2 $flags
  says "no command given; \`mxtrain --help\` lists them"
done

finish
