#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export FILE.onnx and import FILE: a model leaves as ONNX, comes back as layers and weights, and predicts the same.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
write_points
expect 0 train points.yaml --out run

expect 2 export run model.safetensors --float16
says "--with-preprocessing, --fold-batch-norm and --float16 are for FILE.onnx"
expect 2 export run model.pt
says "use FILE.onnx, FILE.safetensors, FILE.gguf, or PREFIX@N for MXNet's files"

# A build without libonnx-dev says so, and does nothing else.
"$program" import "$work" >/dev/null 2>stderr
if grep -qF "this build of mxtrain has no ONNX" stderr; then
  expect 2 export run model.onnx
  says "this build of mxtrain has no ONNX"
  finish
  exit
fi

expect 0 export run model.onnx
prints "model.onnx"
expect 3 export run pixels.onnx --with-preprocessing
says "--with-preprocessing is for models with one input of images"
expect 3 export run folder/model.onnx --with-preprocessing
says "--with-preprocessing is for models with one input of images"
holds "a folder for a file that was not made" test ! -e folder
expect 0 import model.onnx --weights model.safetensors
prints "FullyConnected:"
prints "SoftmaxOutput:"
cp stdout net.yaml
# Nothing is replaced unasked.
cp model.safetensors kept
expect 8 import model.onnx --weights model.safetensors
says "model.safetensors exists already; use --overwrite to replace it, or write another"
expect 8 import model.onnx --output net.yaml
says "net.yaml exists already"
expect 2 import model.onnx --output other.yaml --json
echo changed >model.safetensors
expect 0 import model.onnx --weights model.safetensors --output new/net.yaml --overwrite
holds "the configuration in a file is another" cmp -s net.yaml new/net.yaml
holds "the arrays were not replaced" cmp -s model.safetensors kept
# The data of the first configuration, the net and the weights of the imported one.
sed '/^net:/,/^data:/{/^data:/!d}' points.yaml >data.yaml
expect 0 train data.yaml -c net.yaml --out again train.epochs=0
expect 0 infer run points.csv --format csv
cp stdout wanted
expect 0 infer again points.csv --format csv
holds "the imported model predicts otherwise" cmp -s wanted stdout

# The file as the net of a configuration, its arrays as the initial values.
echo 'net: {onnx: model.onnx}' >file.yaml
expect 0 train data.yaml -c file.yaml --out direct train.epochs=0
says "weights of $work/model.onnx: 2 arrays taken"
expect 0 infer direct points.csv --format csv
holds "the net of the file predicts otherwise" cmp -s wanted stdout
expect 0 train data.yaml -c file.yaml --out further
expect 3 train data.yaml --out unmade 'net={onnx: model.onnx, input: [4]}'
says "weight has shape [2, 4], but [2, 3] was expected"
expect 3 train data.yaml --out unmade 'net={onnx: model.onnx, inputs: {images: [3]}}'
says "model.onnx has no input 'images'; its inputs are data"
expect 8 train data.yaml --out unmade 'net={onnx: absent.onnx}'
expect 0 train data.yaml --out mapped 'net={onnx: model.onnx, inputs: {data: {shape: [3]}}}' train.epochs=0
expect 0 train data.yaml --out scalar 'net={onnx: model.onnx, input: 3}' train.epochs=0
expect 3 train data.yaml --out unmade 'net={onnx: model.onnx, input: [x]}'
says "net.input: next to net.onnx, a size must be a positive integer"
expect 3 train data.yaml --out unmade 'net={onnx: model.onnx, input: [3], inputs: {data: [3]}}'
says "exclude each other"

expect 0 import model.onnx --json
prints '"operator":"FullyConnected"'
expect 0 export run half.onnx --float16
expect 0 import half.onnx --weights half.safetensors
expect 0 train data.yaml -c net.yaml --out half train.epochs=0 train.weights.file=half.safetensors
expect 0 infer half points.csv --format csv
holds "another class in float16" cmp -s <(cut -d, -f1,2 wanted) <(cut -d, -f1,2 stdout)

# y = Relu(x), z = Sigmoid(y) that nothing reads; the output is y.
type='\022\017\012\015\010\001\022\011\012\003\022\001N\012\002\010\003'
printf "\010\010\072\116\012\014\012\001x\022\001y\042\004Relu\012\017\012\001y\022\001z\042\007Sigmoid\022\001g\132\024\012\001x${type}\142\024\012\001y${type}\102\002\020\021" >relu.onnx
expect 0 import relu.onnx
prints "act_type: relu"
holds "a layer that no output depends on" bash -c '! grep -q sigmoid stdout'

# An input of another name, and scores without a loss, beside a configuration that has both.
sed 's/^net:/net:\n  # of points/' points.yaml >whole.yaml
expect 0 import relu.onnx --loss LinearRegressionOutput --output relu.yaml
holds "the input keeps its name" grep -q "its input x is called data" <(tr I i <relu.yaml)
expect 0 plan whole.yaml -c relu.yaml 'data.train.columns={data: [a, b, c], loss_label: [a, b, c]}' train.metrics=null
prints "loss"
printf 'net: {inputs: {data: [3]}, layers: [{FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]}\n' >inputs.yaml
expect 0 plan whole.yaml -c inputs.yaml
expect 0 import model.onnx --loss SoftmaxOutput
holds "there are two losses" test "$(grep -c SoftmaxOutput: stdout)" -eq 1

# Relu of an input that PyTorch calls x.1, which is x_1 in the net.
printf "\010\010\072\101\012\016\012\003x.1\022\001y\042\004Relu\022\001g\132\026\012\003x.1${type}\142\024\012\001y${type}\102\002\020\021" >dots.onnx
for name in x.1 x_1; do
  expect 3 train data.yaml --out unmade "net={onnx: dots.onnx, inputs: {$name: {shape: [3], dtype: floats}}}"
  says "floats"
  expect 3 train data.yaml --out unmade "net={onnx: dots.onnx, inputs: {$name: [4]}}"
  holds "the shape of $name is refused" bash -c '! grep -q "has no input" stderr'
done
expect 3 train data.yaml --out unmade 'net={onnx: dots.onnx, inputs: {x.1: [3], x_1: [3]}}'
says "net.inputs describes the input 'x.1' of $work/dots.onnx twice"
expect 3 train data.yaml --out unmade 'net={onnx: dots.onnx, inputs: {x: [3]}}'
says "dots.onnx has no input 'x'; its inputs are x.1"

# Files that are no models.
echo "no model" >broken.onnx
expect 4 import broken.onnx
says "broken.onnx is not an ONNX model, or is truncated"
head -c 100 model.onnx >short.onnx
expect 4 import short.onnx
expect 8 import absent.onnx
expect 2 import model.onnx --weights model.bin
says "the name must end in .safetensors"
# --- a file that takes pixels: `infer` prepares images as the run does, whose scores are the same, and `eval` too
expect 0 synth shapes --count 20 --classes 2 --size 24 --seed 3
write_photos shapes/train shapes/val 4
for transforms in '{resize: 12}, {center_crop: 8}' '{resize: [8, 8]}'; do
  expect 0 train photos.yaml --out "shapes_run" --overwrite "data.val.transforms=[$transforms, {normalize: {mean: 0.4, std: 0.3}}]"
  expect 0 export shapes_run pixels.onnx --with-preprocessing --overwrite
  expect 0 infer shapes_run shapes/val --format csv
  cp stdout wanted
  expect 0 infer pixels.onnx shapes/val --format csv
  holds "a file that takes pixels predicts otherwise than its run" cmp -s wanted stdout
done
expect 0 eval shapes_run shapes/val --json
cp stdout wanted
expect 0 eval pixels.onnx shapes/val --json
same() { grep -o '"accuracy":[^,}]*' "$1" | head -1; }
holds "a file that takes pixels has another accuracy" test "$(same wanted)" = "$(same stdout)"
# Rewritten by another program, the nodes are not recognized.
sed 's/preprocessed_data/PREPROCESSED_data/g' pixels.onnx >other.onnx
expect 3 infer other.onnx shapes/val
says "other.onnx prepares images itself, in nodes that are not as \`export --with-preprocessing\` wrote them"
finish
