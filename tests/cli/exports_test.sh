#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A model predicts the same in every format in which it leaves: numbers of a table, and images through convolutions and batch norms.
. "$(dirname "$0")/common.sh"
check=$source_dir/tests/reference/check_exports.sh
agrees() {  # RUN INPUT PREDICTIONS
  holds "the exports of $1 predict otherwise" bash "$check" "$program" "$1" "$2" >stdout 2>stderr
  prints "safetensors: $3 predictions are those of the run"
  prints "symbol and .params: $3 predictions are those of the run"
  grep -q "ONNX: skipped" stdout || prints "ONNX: $3 predictions are those of the run"
}

write_points
expect 0 train points.yaml --out table -q
agrees table points.csv 16

"$helper" images train 6
"$helper" images val 3
cat >images.yaml <<'END'
name: images
net:
  input: [3, 24, 24]
  layers:
    - Convolution: {num_filter: 8, kernel: 3, pad: 1, no_bias: true}
    - BatchNorm: {fix_gamma: false}
    - Activation: {act_type: relu}
    - Pooling: {kernel: 2, stride: 2, pool_type: max}
    - Convolution: {num_filter: 8, kernel: 3, pad: 1, num_group: 8}
    - Activation: {act_type: sigmoid}
    - Pooling: {global_pool: true, pool_type: avg, kernel: 1}
    - Flatten
    - Dropout
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: image_folder, path: train, transforms: [{resize: [24, 24]}, {normalize: imagenet}], shuffle: true}
  val: {source: image_folder, path: val, transforms: [{resize: [24, 24]}, {normalize: imagenet}]}
train: {epochs: 2, optimizer: {lr: 0.05}, metrics: [accuracy]}
END
expect 0 train images.yaml --out images -q
agrees images val "$(find val -type f | wc -l)"

# A program of one's own predicts what infer predicts.
example=$(dirname "$program")/mxtrain_example_trained_run
if [ -x "$example" ]; then
  expect 0 infer images val --format csv --output predicted.csv -q
  for image in val/*/*; do
    said=$("$example" images "$image")
    listed=$(grep -F "$image," predicted.csv | cut -d, -f2,3)
    holds "the example says '$said' of $image, infer $listed" awk -v said="$said" -v listed="$listed" 'BEGIN {
      split(said, a, " "); split(listed, b, ","); d = a[2] - b[2]; exit !(a[1] == b[1] && d < 2e-4 && d > -2e-4) }'
  done
fi

# The script sees a difference.
printf '%s\n' '#!/usr/bin/env bash' '"$MXTRAIN_PROGRAM" "$@"' 'case "$*" in *again_safetensors*--output*) f=${@: -2:1}; echo "1,1,0.5" >>"$f";; esac' >liar
chmod +x liar
holds "a changed prediction passes" bash -c '! bash "$0" ./liar table points.csv >stdout 2>stderr' "$check"
prints "safetensors: predictions differ"
finish
