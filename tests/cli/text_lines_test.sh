#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lines of text in images: from a table to texts; batches of several widths.
. "$(dirname "$0")/common.sh"

expect 0 synth lines --task text_lines --count 320 --size 40 --val 0.2
prints "256 images in train, 64 in val"
holds "there are no texts" test "$(wc -l <lines/train.tsv)" -eq 257
expect 2 synth other --task text_lines --classes 3
says "lines of text have letters, no classes"

# --- a configuration for a folder, or for its table
expect 0 init lines
prints "lines.yaml: 256 lines of "
prints "lines/val.tsv to validate"
expect 0 init lines/train.tsv --output table.yaml --json
prints '"lines":256'
expect 2 init lines --size 64 --output sized.yaml
says "lines of text have a net of their own"
expect 0 check lines.yaml
prints "256 training examples, 64 for validation"

# --- a small net, of numbers alone, that learns them
awk -F'\t' 'NR == 1 || $2 ~ /^[0-9]+$/' lines/train.tsv >lines/numbers.tsv
awk -F'\t' 'NR == 1 || $2 ~ /^[0-9]+$/' lines/val.tsv >lines/few.tsv
cat >numbers.yaml <<'END'
name: numbers
seed: 1
vars: {width: 96}
net:
  input: [1, 16, "${width}"]
  layers:
    - Convolution: {name: conv1, num_filter: 8, kernel: 3, pad: 1}
    - BatchNorm: {name: bn1, fix_gamma: false}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - Convolution: {name: conv2, num_filter: 16, kernel: 3, pad: 1}
    - BatchNorm: {name: bn2, fix_gamma: false}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: [8, 1], stride: [8, 1]}
    - Reshape: {shape: [0, 0, -1]}
    - transpose: {axes: [2, 0, 1]}
    - RNN: {name: lstm, mode: lstm, state_size: 24, num_layers: 1, bidirectional: true}
    - FullyConnected: {name: scores, num_hidden: "${classes + 1}", flatten: false}
    - CTCLoss: {name: ctc, inputs: scores}
    - MakeLoss: {name: loss}
    - ctc_greedy_decoder: {name: letters, inputs: scores}
    - BlockGrad: {name: text}
data:
  batch_size: 8
  train:
    source: text_lines
    path: lines/numbers.tsv
    transforms: [{letterbox: {size: [16, "${width}"], fill: 0}}, {normalize: {mean: [0.5], std: [0.25]}}]
  val:
    source: text_lines
    path: lines/few.tsv
    transforms: [{letterbox: {size: [16, "${width}"], fill: 0}}, {normalize: {mean: [0.5], std: [0.25]}}]
train: {epochs: 4, optimizer: {name: adam, lr: 0.01}, metrics: [cer, wer]}
END
expect 0 check numbers.yaml
expect 0 train numbers.yaml --out run
says "of an alphabet of 10: 0123456789"
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
first() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } NR == 2 { print int(1000 * $c) }' run/metrics.csv; }
holds "nothing is learnt: the loss is $(first train_loss), then $(last train_loss)" test "$(last train_loss)" -lt $(($(first train_loss) / 2))
holds "there is no sheet of the first batch" test -s run/samples/train_batch.png
expect 0 verify-resume numbers.yaml --steps 5

# --- evaluation and predictions
expect 0 eval run
prints "character error rate "
prints "word error rate "
expect 0 eval run --json
prints '"text_lines":{"cer":'
expect 0 eval run --predictions each.csv
holds "a line for each image is missing" test "$(head -1 each.csv)" = "file,true,predicted,score,errors"
holds "the errors of letters are not counted" test -s run/eval/confused_letters.csv
expect 0 infer run lines/val --format csv
prints "file,text,score"
expect 0 infer run lines/val/000000.png --format jsonl
prints '"text":'
cut -f1 lines/few.tsv | sed '1d; s|^|lines/|' >few.txt
expect 0 infer run few.txt --format csv
# Letters that the net does not have, and more of them.
printf 'lines/val/000000.png 12x4567890123456\n' >strange.txt
expect 0 eval run strange.txt
says "1 text with a letter that the training data does not have ('x' of strange.txt:1 first)"
says "1 text of more than 9 letters"
prints "of 16 letters"

# The file for other programs has the decoder in it.
expect 0 export run lines.onnx
says "fill=0 (the image at the upper left)"
says "output: rows of the class of a letter and its probability"
expect 0 import lines.onnx
prints "RNN:"

# --- batches of several widths
expect 0 train numbers.yaml --out wide -q data.bucket_lengths='[40, 64]'
expect 0 verify-resume numbers.yaml --steps 7 data.bucket_lengths='[40, 64]'
expect 0 train numbers.yaml --out threads -q --threads 1 data.bucket_lengths='[40, 64]'
holds "another number of threads reads other batches" cmp -s <(cut -d, -f1-3 wide/metrics.csv) <(cut -d, -f1-3 threads/metrics.csv)
expect 0 train numbers.yaml --out told data.bucket_lengths='[40, 64]' train.max_steps=2
says "buckets of training: "
says " of at most 40, "
expect 0 plan numbers.yaml data.bucket_lengths='[40, 64]'
prints "batches of 40"

# --- what does not fit
expect 3 train numbers.yaml --out none data.bucket_lengths='[64, 40]'
says "data.bucket_lengths: 40 is not between 64, the one before, and 96"
expect 3 train numbers.yaml --out none data.bucket_lengths='[96]'
says "96 is not between 0 and 96"
sed 's/{letterbox.*fill: 0}}, /{resize: [16, 96]}, /' numbers.yaml >resized.yaml
expect 3 train resized.yaml --out none data.bucket_lengths='[40]'
says "no letterbox makes images of the net's size"
expect 4 train numbers.yaml --out none data.train.alphabet=0123456
says "is not in the alphabet (0123456)"
expect 4 train numbers.yaml --out none data.train.most_letters=2
says "more than most_letters = 2"
printf 'image\ttext\nval/000000.png\n' >lines/short.tsv
expect 4 train numbers.yaml --out none data.train.path=lines/short.tsv
says "short.tsv:2"
expect 9 check numbers.yaml vars.width=8
says "more letters than 'text' has steps, 4,"
finish
