#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Arrays in place of images and tables: infer and eval with --input NAME=FILE.npy, on runs and on ONNX files.
. "$(dirname "$0")/common.sh"

# npy FILE SHAPE NUMBER...: an array of small whole numbers, int8.
npy() {
  local file=$1 header="{'descr': '|i1', 'fortran_order': False, 'shape': ($2), }" number
  shift 2
  header+=$(printf '%*s' $((117 - ${#header})) '')
  {
    printf '\223NUMPY\1\0\166\0%s\n' "$header"
    for number; do printf '%b' "\\0$(printf '%03o' "$number")"; done
  } >"$file"
}

write_points
expect 0 train points.yaml --out run
# The table as arrays: the same predictions, metrics and outputs.
# shellcheck disable=SC2046 # words
npy x.npy "16, 3" $(sed 1d points.csv | cut -d, -f1-3 | tr , ' ')
# shellcheck disable=SC2046 # words
npy y.npy "16," $(sed 1d points.csv | cut -d, -f4)
expect 0 infer run points.csv --format csv --probabilities table.npy
cp stdout table.csv
expect 0 infer run --input data=x.npy --format csv --probabilities arrays.npy
holds "predictions of arrays differ from those of the table" cmp -s stdout table.csv
holds "scores of arrays differ from those of the table" cmp -s arrays.npy table.npy
expect 0 infer run --input data=x.npy --output outputs.npy
holds "the net's output differs from the scores" cmp -s outputs.npy table.npy
expect 0 infer run --input data=x.npy --output rows.jsonl
holds "no row is named" grep -q '"row":"16"' rows.jsonl
expect 0 infer run --input data=x.npy --output-layer fullyconnected0 --output layer.npy
holds "names of rows" test "$(head -2 stdout | xargs)" = "1 2"
expect 0 eval run points.csv --json
metrics=$(grep -o '"metrics": *{[^}]*}' stdout)
expect 0 eval run --input data=x.npy --input softmax_label=y.npy --json
holds "metrics of arrays differ from $metrics" grep -qF "$metrics" stdout
expect 0 eval run --input data=x.npy --input softmax_label=y.npy
prints "on 16 examples of arrays of data, softmax_label"

# What cannot be meant.
expect 2 infer run
says "inputs is required"
expect 2 infer run points.csv --input data=x.npy
says "points.csv beside --input NAME=FILE: give either arrays or images, lists and tables"
expect 2 eval run points.csv --input data=x.npy
says "give either arrays or DATA"
expect 2 infer run --input dat=x.npy
says "no array for its input 'data'; give it: --input data=FILE.npy"
expect 2 infer run --input data=x.npy --input dta=x.npy
says "--input dta: run/checkpoints/best has no such input; did you mean 'data'?"
expect 2 infer run --input data=x.npy --input data=x.npy
says "'data' is given twice"
expect 0 infer run --input data=x.npy --input softmax_label=y.npy
says "y.npy is not read: no prediction depends on 'softmax_label'"
expect 2 infer run --input data=x.npy --size 3,4,4
says "--size, --mean and --std prepare images"
expect 2 infer run --input data=x.npy --tta flip
says "--tta are for images"
expect 2 infer run --input data
says "inputs is required"
expect 8 infer run --input data=absent.npy
says "absent.npy"
npy narrow.npy "16, 2" $(seq 32)
expect 4 infer run --input data=narrow.npy
says "narrow.npy: an array [N, 2] for the input 'data', which is [N, 3]"
npy short.npy "15," $(seq 15)
expect 2 eval run --input data=x.npy --input softmax_label=short.npy
says "x.npy holds 16 examples, short.npy holds 15; the first axis counts them"
npy one.npy "" 1
expect 4 infer run --input data=one.npy
says "one.npy: shape (); its first axis has to count the examples"
head -c 140 x.npy >cut.npy
expect 4 infer run --input data=cut.npy
says "cut.npy: its header describes the shape (16, 3) of '|i1', which are not the 12 bytes that follow"
expect 4 infer run --input data=points.csv
says "points.csv: not a .npy file"
expect 2 infer run --input data=x.npy --output out.npy --top-k 2
says "--format, --top-k, --threshold and --probabilities are for predictions"

# Several inputs and several outputs, of a run and of the ONNX file that it is exported to.
cat >pair.yaml <<'END'
name: pair
net:
  inputs: {left: [2], right: [1]}
  layers:
    - Concat: {name: both, inputs: [left, right]}
    - FullyConnected: {name: hidden, num_hidden: 4}
    - FullyConnected: {name: fc, num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
    - BlockGrad: {name: features, inputs: hidden}
  outputs: [softmax, features]
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {left: [a, b], right: [c], softmax_label: y}}
train: {epochs: 1, metrics: [{name: accuracy, output: softmax}]}
END
expect 0 train pair.yaml --out pair
# shellcheck disable=SC2046 # words
npy left.npy "16, 2" $(sed 1d points.csv | cut -d, -f1,2 | tr , ' ')
# shellcheck disable=SC2046 # words
npy right.npy "16," $(sed 1d points.csv | cut -d, -f3)
expect 0 infer pair points.csv --format csv
cp stdout table.csv
expect 0 infer pair --input right=right.npy --input left=left.npy --format csv
holds "predictions of two arrays differ from those of the table" cmp -s stdout table.csv
expect 0 infer pair --input left=left.npy --input right=right.npy --output pair.npy
says "features: pair-features.npy"
for head in softmax features; do holds "there is no pair-$head.npy" test -s "pair-$head.npy"; done
holds "pair-features.npy has 16 rows of 4" grep -qa "'shape': (16, 4,)" pair-features.npy
expect 2 infer pair --input left=left.npy
says "no array for its input 'right'"

"$program" export pair pair.onnx 2>stderr || { grep -q "without ONNX\|MXTRAIN_WITH_ONNX\|no ONNX" stderr && finish; }
expect 0 infer pair.onnx --input left=left.npy --input right=right.npy --output onnx.npy
holds "the ONNX file gives other outputs: $(ls onnx*)" test "$(ls onnx-*.npy | wc -l)" -eq 2
expect 0 infer pair.onnx --input left=left.npy --input right=right.npy --format csv
holds "the ONNX file predicts other classes" test "$(cut -d, -f1-3 stdout | tail -n +2)" = "$(cut -d, -f1-3 table.csv | tail -n +2)"
expect 4 infer pair.onnx --input left=x.npy --input right=right.npy
says "pair.onnx: an example of the input 'left' has the shape [2], one of the array has [3]"
expect 0 export run points.onnx
expect 0 eval points.onnx --input data=x.npy --input softmax_label=y.npy --json
holds "accuracy of the ONNX file: $metrics" grep -qF "$(grep -o '"accuracy": *[0-9.]*' <<<"$metrics")" stdout
expect 2 eval points.onnx --input data
says "declares its own inputs"
expect 4 export points.onnx other.safetensors
says "points.onnx is an ONNX file, not a run or checkpoint"

# y [3, 2] = x [3, 2] + c [3, 1], a number of its own for each example: a file for its batch of three alone.
value='\022\016\012\014\010\001\022\010\012\002\010\003\012\002\010\002' # float32 [3, 2]
numbers='\000\000\040\101\000\000\240\101\000\000\360\101'                 # 10, 20, 30
add='\012\016\012\001x\012\001c\022\001y\042\003Add\022\001g'
c="\052\027\010\003\010\001\020\001\112\014${numbers}\102\001c"
# shellcheck disable=SC2059 # bytes
printf "\010\010\072\126$add$c\132\023\012\001x$value\142\023\012\001y$value\102\002\020\021" >fixed.onnx
npy three.npy "3, 2" 1 2 3 4 5 6
expect 0 infer fixed.onnx --input x=three.npy --output fixed.npy
holds "the outputs are not (11, 12), (23, 24), (35, 36)" \
  test "$(tail -c 24 fixed.npy | od -An -v -tf4 | xargs)" = "11 12 23 24 35 36"
expect 0 infer fixed.onnx --input x=three.npy --batch 3 --format csv
prints "3,35,36"
npy six.npy "6, 2" 1 2 3 4 5 6 7 8 9 10 11 12
expect 4 infer fixed.onnx --input x=six.npy --output of_six.npy
says "fixed.onnx is for a batch of 3 alone, not for 6 examples: give it 3, or export the model with a batch of any size"
expect 4 eval fixed.onnx --input x=six.npy
says "fixed.onnx is for a batch of 3 alone, not for 6 examples"
expect 2 infer fixed.onnx --input x=three.npy --batch 1 --output one.npy
says "--batch 1: fixed.onnx is for a batch of 3 alone"
# An input that nothing reads, and a mask of infinities: y = max(x, c).
printf "\010\010\072\153$add$c\132\023\012\001x$value\132\023\012\001z$value\142\023\012\001y$value\102\002\020\021" \
  >unread.onnx
expect 0 infer unread.onnx --input x=three.npy --output unread.npy
expect 0 infer unread.onnx --input x=three.npy --input z=three.npy --output unread.npy --overwrite
says "three.npy is not read: no prediction depends on 'z'"
holds "the outputs with an unread input differ" cmp -s unread.npy fixed.npy
infinite=${c/"$numbers"/'\000\000\200\377\000\000\240\101\000\000\200\377'} # -inf, 20, -inf
printf "\010\010\072\126${add/Add/Max}$infinite\132\023\012\001x$value\142\023\012\001y$value\102\002\020\021" >mask.onnx
expect 0 infer mask.onnx --input x=three.npy --output mask.npy
holds "the outputs are not (1, 2), (20, 20), (5, 6)" \
  test "$(tail -c 24 mask.npy | od -An -v -tf4 | xargs)" = "1 2 20 20 5 6"
# y [N, N, 2] = x [N, 1, 2] + z [N, 2]: what belongs to an example depends on the number of examples.
printf '\010\010\072\136\012\016\012\001x\012\001z\022\001y\042\003Add\022\001gZ\030\012\001x\022\023\012\021\010\001\022\015\012\003\022\001N\012\002\010\001\012\002\010\002Z\024\012\001z\022\017\012\015\010\001\022\011\012\003\022\001N\012\002\010\002b\031\012\001y\022\024\012\022\010\001\022\016\012\003\022\001N\012\003\022\001N\012\002\010\002B\002\020\021' >square.onnx
npy wide.npy "3, 1, 2" 1 2 3 4 5 6
expect 2 infer square.onnx --input x=wide.npy --input z=three.npy --output square.npy
says "is [3, 3, 2] for a batch of 3 and [1, 1, 2] for a batch of 1: an example has no part of it of its own"
# A reason that has nothing to do with the batch stays the reason.
sed 's/\x03Add/\x03Xyz/' fixed.onnx >unknown.onnx
expect 3 infer unknown.onnx --input x=three.npy --output unknown.npy
says "the model uses operators that have no equivalent here: Xyz"
finish
